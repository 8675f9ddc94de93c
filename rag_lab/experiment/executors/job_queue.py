"""The jobs of a sweep in the store: announced, claimed by whoever computes them, handed in and collected.

A job has a key. What is stored under it are its packed results, or a word that says why there are none any more; as
long as nothing is, it is to be done, by whoever claims the key.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import ValidationError

from rag_lab._kit.config_file import adapter_of
from rag_lab._kit.home import home
from rag_lab._kit.machine import Process
from rag_lab.errors import RagLabError
from rag_lab.experiment.executors.job import Done, Job, Poll, Veto, check_parameters
from rag_lab.experiment.executors.task import BadArchiveError, Task, unpack
from rag_lab.memory.results import Memory
from rag_lab.runs.live_file import LIVE_FILE, LiveVariant, read_live
from rag_lab.runs.run_folder import write_json

FILE = "variants.sqlite"
_ROOM = "variants"
_TAKEN = json.dumps("taken")
_WITHDRAWN = json.dumps("withdrawn")
_LOGGER = logging.getLogger(__name__)
_COLLECT_EVERY_S = 0.25
_LOOK_FOR_WORKERS_S = 2.0
_ALONE_S = 60.0
_BEGAN = "stage_began"

# Starts workers for a run and its jobs, at most so many at a time, and ends them; yields what is called at each look.
Launch = Callable[[str, Sequence[Job], int], AbstractContextManager[Callable[[], None]]]


@dataclass(frozen=True, slots=True)
class JobQueue:
    """The jobs of the run of this name."""

    run: str
    memory: Memory

    @classmethod
    def of(cls, run: str) -> JobQueue:
        """Return those in the store that the environment names."""
        return cls(run, Memory(home() / FILE))

    def announce(self, tasks: Sequence[Task]) -> dict[str, str]:
        """Announce these alone and return their keys by name; what was handed in for an earlier start is theirs."""
        before = self._listed() or {}
        used = self.memory.recall(_key(one["key"]) for one in before.values())
        keys = {}
        for task in tasks:
            known = before.get(task.name)
            is_left = known is not None and used.get(_key(known["key"])) not in (_TAKEN, _WITHDRAWN)
            fits = known is not None and known["identity"] == task.origin.identity
            keys[task.name] = known["key"] if known and is_left and fits else uuid.uuid4().hex
        self.memory.store(_ROOM, {f"task {keys[task.name]}": task.to_json() for task in tasks})
        listed = {task.name: {"key": keys[task.name], "identity": task.origin.identity} for task in tasks}
        self.memory.store(_ROOM, {f"run {self.run}": json.dumps(listed)})
        return keys

    def keys(self) -> list[str] | None:
        """Return the keys of the jobs that are announced; None where nobody has announced any."""
        listed = self._listed()
        return None if listed is None else [one["key"] for one in listed.values()]

    def task(self, key: str) -> Task:
        """Return an announced job."""
        name = f"task {key}"
        try:
            return Task.from_json(self.memory.recall([name])[name])
        except (KeyError, TypeError, ValueError):
            raise RagLabError(
                f"The run {self.run} was announced by another version of rag_lab; install the same here."
            ) from None

    def claim(self, keys: Iterable[str]) -> str:
        """Claim one of the jobs that nobody has done or does; '' where there is none."""
        mine = self.memory.claim([_key(key) for key in keys], 1)
        return mine[0].partition(" ")[2] if mine else ""

    def keeping(self, key: str) -> AbstractContextManager[None]:
        """Keep the claim on a job in this block; at its end give it up."""
        return self.memory.keeping([_key(key)])

    def holders(self, keys: Iterable[str]) -> list[Process]:
        """Return those who have claims on any of these jobs."""
        return self.memory.holders(map(_key, keys))

    def hand_in(self, key: str, results: str) -> None:
        """Store the packed results of a job, which was claimed."""
        self.memory.store(_ROOM, {_key(key): results})

    def write_status(self, key: str, status: str) -> None:
        """Store how a job stands while it runs; see `export_status`."""
        self.memory.store(_ROOM, {f"said {key}": status})

    def statuses(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the last status of those of the jobs that have any, by their keys."""
        by_key = {f"said {key}": key for key in keys}
        return {by_key[name]: status for name, status in self.memory.recall(by_key).items()}

    def collect(self, keys: Mapping[str, str]) -> tuple[str, str] | None:
        """Return the name and the packed results of one of the jobs (keys by name) that is done; None where none is."""
        for name, key in keys.items():
            if found := self.memory.recall([_key(key)]):
                return name, found[_key(key)]
        return None

    def is_over(self, key: str) -> bool:
        """Tell whether nobody waits for the job any more, or it is done."""
        return bool(self.memory.recall([_key(key)]))

    def drop(self, key: str) -> None:
        """Note that the results of a job have been unpacked, and need not be kept."""
        self.memory.store(_ROOM, {_key(key): _TAKEN})

    def withdraw(self, keys: Iterable[str]) -> None:
        """Take jobs back: nobody begins them, and who is at them stops."""
        self.memory.store(_ROOM, dict.fromkeys(map(_key, keys), _WITHDRAWN))

    def _listed(self) -> dict[str, dict[str, str]] | None:
        listed = self.memory.recall([f"run {self.run}"])
        return dict(json.loads(listed[f"run {self.run}"])) if listed else None


def _key(key: str) -> str:
    return f"job {key}"


def announce_and_collect(
    launch: Launch, jobs: Sequence[Job], n_jobs: int = 1, *, poll: Poll, veto: Veto
) -> Iterator[Done]:
    """Announce jobs in the store, launch workers, and yield each job when its results are there and unpacked.

    What workers hand in while nobody collects stays in the store for the next start of the sweep.
    """
    if not jobs:
        return
    for job in jobs:
        check_parameters(job.notebook, job.parameters)
    tasks = {job.name: Task.of(job) for job in jobs}
    run = next(iter(tasks.values())).origin.run
    queue, open_jobs = JobQueue.of(run), {job.name: job for job in jobs}
    keys = queue.announce([*tasks.values()])
    watch = _Watch(queue)
    with launch(run, jobs, n_jobs) as look, queue.memory.opened():
        while open_jobs:
            if (found := queue.collect({name: keys[name] for name in open_jobs})) is not None:
                name, results = found
                job = open_jobs.pop(name)
                try:
                    ended = unpack(results, job.output.parent)
                    yield Done(job, ended.reason, ended.seconds)
                except BadArchiveError as error:
                    yield Done(job, str(error), 0.0)
                queue.drop(keys[name])
                continue
            look()
            running, statuses = watch.running({name: keys[name] for name in open_jobs})
            for name, status in statuses.items():
                import_status(open_jobs[name].output.parent, status)
            poll(running)
            vetoed = {name: why for name, job in open_jobs.items() if (why := veto(job, name in running))}
            queue.withdraw(keys[name] for name in vetoed)
            for name, why in vetoed.items():
                (open_jobs[name].output.parent / LIVE_FILE).unlink(missing_ok=True)
                yield Done(open_jobs.pop(name), why, 0.0, vetoed=True)
            time.sleep(_COLLECT_EVERY_S)


class _Watch:
    """Which jobs somebody is at, looked up every few seconds; where nobody is, for a minute, a sentence says so."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._looked_s = float("-inf")
        self._busy_s = time.monotonic()
        self._running: list[str] = []

    def running(self, keys: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """Return the names of those of the jobs (keys by name) that somebody has claimed, and statuses that are new."""
        now_s, statuses = time.monotonic(), dict[str, str]()
        if now_s - self._looked_s >= _LOOK_FOR_WORKERS_S:
            self._looked_s = now_s
            is_any = bool(self._queue.holders(keys.values()))
            self._running = [n for n, key in keys.items() if self._queue.holders([key])] if is_any else []
            found = self._queue.statuses(keys[name] for name in self._running)
            statuses = {name: found[keys[name]] for name in self._running if keys[name] in found}
            self._busy_s = now_s if is_any else self._busy_s
            if now_s - self._busy_s > _ALONE_S:
                self._busy_s = float("inf")
                how = "start one, on any machine that sees the store, with: rag-lab worker"
                _LOGGER.warning("No worker has taken anything for %.0f s; %s %s", _ALONE_S, how, self._queue.run)
        return [name for name in self._running if name in keys], statuses


def export_status(folder: Path) -> str:
    """Return how a variant at work in `folder` stands, as a text to be sent; '' where it does not say.

    A moment is sent as the seconds since then: the clocks of two machines differ.
    """
    live = read_live(folder, LiveVariant)
    return json.dumps(asdict(live) | {_BEGAN: time.time() - live.stage_began}) if live else ""


def import_status(folder: Path, status: str) -> None:
    """Write a status that was sent into `folder`, of a variant in its run; nothing where it is no status."""
    try:
        known = json.loads(status)
        live = adapter_of(LiveVariant).validate_python(known | {_BEGAN: time.time() - known[_BEGAN]})
    except (ValueError, TypeError, KeyError, ValidationError):
        return
    if folder.is_dir():
        write_json(folder / LIVE_FILE, live)
