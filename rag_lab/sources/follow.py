"""Looking at sources, once or for as long as they change: events, intervals, growing pauses; a sweep's own state.

A source that is down is tried again, later each time, while the others go on.
"""

import random
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from rag_lab._kit.digest import whole_folder
from rag_lab._kit.home import home
from rag_lab.data.dataset import Dataset, find_dataset
from rag_lab.sources.ingestion import STATE, Ingestion, batch_lock
from rag_lab.sources.source import Pass, Source

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 60.0
_ATTEMPTS = 3  # at a source that is down, where nothing is followed
_EVENTS = 500  # that name keys, beyond which all are listed
_LOOK_S = 0.05  # how long a wait lasts before it looks what changed


def ingest(
    ingestion: Ingestion, follow: bool, tell: Callable[[Pass], object], stop: threading.Event, dry: bool = False
) -> list[Pass]:
    """Look at each source, or follow them until `stop` is set; return what was found at each in the end."""
    sources = {name: connector.open() for name, connector in ingestion.connectors.items()}
    ingestion.stops = stop.is_set
    heard = {name: deque[tuple[str, ...]](maxlen=_EVENTS) for name in sources}  # the keys that events name
    for name, source in sources.items() if follow else ():
        threading.Thread(target=_watch, args=(source, heard[name].append, stop), daemon=True).start()
    due, failures, last = dict.fromkeys(sources, 0.0), dict.fromkeys(sources, 0), dict[str, Pass]()
    while not stop.is_set():
        for name, source in sources.items():
            is_due = time.monotonic() >= due[name]
            if stop.is_set() or not (is_due or (heard[name] and not failures[name])):
                continue
            events = [heard[name].popleft() for _ in range(len(heard[name]))]
            alone = not is_due and all(events) and len(events) < _EVENTS and not source.is_log
            keys = set(chain(*events)) if alone else set()
            last[name] = found = ingestion.look(name, source, dry, keys)
            failures[name] = failures[name] + 1 if found.failure else 0
            tell(found)
            if keys and not found.failure:  # where one is not there, all are listed: it is gone, or no key
                due[name] = due[name] if found.whole else 0
            else:
                due[name] = time.monotonic() + (_pause(failures[name]) or ingestion.connectors[name].every_s)
        again = [name for name, n in failures.items() if 0 < n < _ATTEMPTS]
        if not follow and not again:
            break
        if not follow:
            due |= {name: float("inf") for name in sources if name not in again}
        stop.wait(_LOOK_S)
    return list(last.values())


def _pause(failures: int) -> float:
    """Return how long to wait after so many failures in a row: twice as long each time, and not all at one moment."""
    longest = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (failures - 1))
    return longest * random.uniform(0.75, 1.0) if failures else 0.0  # noqa: S311 - no secret


def _watch(source: Source, hear: Callable[[tuple[str, ...]], object], stop: threading.Event) -> None:
    """Hear of changes until `stop`; a source that is down is heard again later, and listed at intervals meanwhile."""
    failures = 0
    while not stop.is_set():
        began = time.monotonic()
        try:
            source.watch(lambda *keys: hear(keys), stop)
            return
        except Exception:  # whatever it is, a listing meets it, too, and names it
            failures = 1 if time.monotonic() - began > _LONGEST_PAUSE_S else failures + 1
            stop.wait(_pause(failures))


def settled(location: Path | str) -> Dataset | None:
    """Return a data set that sources write as it is between two batches, in a folder that nobody writes any more.

    Files appear by renaming, so a link to one is what it was. None where no source writes it.
    """
    folder = find_dataset(location)
    if not (folder / STATE).exists():
        return None
    with batch_lock(folder):
        now = Dataset.load(location, labelled=False)
        target = home() / "snapshots" / now.digest
        with whole_folder(target) as unfinished:
            if unfinished:
                ours = [now.corpus_dir / name for name in Ingestion(folder, []).status()]
                others = shutil.ignore_patterns(".*", f"{STATE}*", "connectors.yaml")
                shutil.copytree(folder, unfinished, ignore=others, copy_function=partial(_linked, ours))
    file = target if now.location == now.path else target / now.questions_file
    return replace(Dataset.load(file, labelled=False), name=now.name)


def _linked(ours: list[Path], source: str, target: str) -> None:
    """Link what is written by renaming alone, and copy what people may edit."""
    if any(Path(source).is_relative_to(folder) for folder in ours):
        try:
            Path(target).hardlink_to(source)
            return
        except OSError:  # another file system
            pass
    shutil.copy2(source, target)
