"""One sweep at a time in a run folder: by its lock, and in the store, as a lock may hold on one machine only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from rag_lab._kit.home import usable_home
from rag_lab.errors import RagLabError
from rag_lab.experiment.executors.job_queue import FILE
from rag_lab.memory.results import Memory
from rag_lab.runs.live_file import LIVE_FILE
from rag_lab.runs.run_folder import LOCK_FILE, NAME_FILE, PLAN_FILE, run_name


@contextmanager
def alone_in_store(path: Path) -> Iterator[str]:
    """Yield the name of the run in `path`, which is held in the store in this block.

    Raises:
        RagLabError: if another sweep holds it.
    """
    name, memory = run_name(path), Memory(usable_home() / FILE)
    key = f"sweep {name}"
    if not memory.claim([key], 1):
        others = ", ".join(map(str, memory.holders([key])))
        raise RagLabError(
            f"Another sweep is running in {path}, by {others}; wait for it (a minute, where its machine is gone), or "
            "give another folder with --out."
        )
    with memory.keeping([key]):
        yield name


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the run folder alone."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        others = {entry.name for entry in path.iterdir()} - {LOCK_FILE, LIVE_FILE, NAME_FILE}
    except OSError as error:
        raise RagLabError(f"Cannot write to {path}: {error.strerror}; give another folder with --out.") from None
    if others and PLAN_FILE not in others:
        raise RagLabError(f"{path} holds something else than a run; give an empty or a new folder with --out.")
    try:
        with FileLock(path / LOCK_FILE, timeout=0):
            yield
    except Timeout:
        raise RagLabError(
            f"Another sweep is running in {path}; wait for it, or give another folder with --out."
        ) from None
