"""The jobs of a sweep in the store: announced, claimed by workers that compute them, handed in and collected.

A job has a key. What is stored under it are its packed results, or a word that says why there are none any more; as
long as nothing is, it is to be done, by whoever claims the key.
"""

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError

from rag_lab._kit import home, machine, section
from rag_lab.errors import RagLabError
from rag_lab.experiment.executors import local
from rag_lab.experiment.executors.task import BadArchiveError, Task, pack, unpack
from rag_lab.memory.results import Memory
from rag_lab.runs import run_folder, variant_files

FILE = "variants.sqlite"
TAKEN = json.dumps("taken")  # the results have been unpacked, and need not be kept
WITHDRAWN = json.dumps("withdrawn")  # nobody begins it, and who is at it stops
_LOGGER = logging.getLogger(__name__)
_LOOK_FOR_WORKERS_S = 2.0
_ALONE_S = 60.0
_WAIT_S = 0.5
_OVER_EVERY_S = 2.0
_STATUS_EVERY_S = 3.0  # who looks on, looks every few seconds
_BEGAN = "stage_began"

# Starts workers for a run and its jobs, at most so many at a time, and ends them; yields what is called at each look.
Launch = Callable[[str, Sequence[local.Job], int], AbstractContextManager[Callable[[], None]]]


@dataclass(frozen=True, slots=True)
class JobQueue:
    """The jobs of the run of this name, in the store that the environment names."""

    run: str
    memory: Memory = field(default_factory=lambda: Memory(home.home() / FILE))

    def announce(self, tasks: Sequence[Task]) -> dict[str, str]:
        """Announce these alone and return their keys by name; what was handed in for an earlier start is theirs."""
        before = self.announced()
        used = self.memory.recall(one["key"] for one in before.values())
        keys = {}
        for task in tasks:
            known = before.get(task.name)
            is_left = known is not None and used.get(known["key"]) not in (TAKEN, WITHDRAWN)
            fits = known is not None and known["identity"] == task.origin.identity
            keys[task.name] = known["key"] if known and is_left and fits else f"job {uuid.uuid4().hex}"
        self.store({f"task {keys[task.name]}": json.dumps(asdict(task)) for task in tasks})
        listed = {task.name: {"key": keys[task.name], "identity": task.origin.identity} for task in tasks}
        self.store({f"run {self.run}": json.dumps(listed)})
        return keys

    def announced(self) -> dict[str, dict[str, str]]:
        """Return by name the `key` and the `identity` of each job that is announced; none where nobody has."""
        return dict(json.loads(self.memory.recall([f"run {self.run}"]).get(f"run {self.run}", "{}")))

    def task(self, key: str) -> Task:
        """Return an announced job."""
        name = f"task {key}"
        try:
            task: Task = section.adapter_of(Task).validate_json(self.memory.recall([name])[name])
            return task
        except (KeyError, ValueError):
            raise RagLabError(
                f"The run {self.run} was announced by another version of rag_lab; install the same here."
            ) from None

    def claim(self, keys: Iterable[str]) -> str:
        """Claim one of the jobs that nobody has done or does; '' where there is none."""
        return next(iter(self.memory.claim(list(keys), 1)), "")

    def store(self, values: Mapping[str, str]) -> None:
        """Store by the keys of jobs packed results, `TAKEN` or `WITHDRAWN`; or by other names what is kept of them."""
        self.memory.store("variants", values)

    def collect(self, keys: Mapping[str, str]) -> tuple[str, str] | None:
        """Return the name and the packed results of one of the jobs (keys by name) that is done; None where none is."""
        for name, key in keys.items():
            if found := self.memory.recall([key]):
                return name, found[key]
        return None

    def is_over(self, key: str) -> bool:
        """Tell whether nobody waits for the job any more, or it is done."""
        return bool(self.memory.recall([key]))


def announce_and_collect(
    launch: Launch, jobs: Sequence[local.Job], n_jobs: int = 1, *, poll: local.Poll, veto: local.Veto
) -> Iterator[local.Done]:
    """Announce jobs in the store, launch workers, and yield each job when its results are there and unpacked.

    What workers hand in while nobody collects stays in the store for the next start of the sweep. Who is at which job
    is looked up every few seconds; where nobody is at any, for a minute, a sentence says so.
    """
    if not jobs:
        return
    for job in jobs:
        local.check_parameters(job.notebook, job.parameters)
    tasks = {job.name: Task.of(job) for job in jobs}
    run = next(iter(tasks.values())).origin.run
    queue, open_jobs = JobQueue(run), {job.name: job for job in jobs}
    keys = queue.announce([*tasks.values()])
    looked_s, busy_s, claimed = float("-inf"), time.monotonic(), list[str]()
    with launch(run, jobs, n_jobs) as look, queue.memory.opened():
        while open_jobs:
            if (found := queue.collect({name: keys[name] for name in open_jobs})) is not None:
                name, results = found
                job = open_jobs.pop(name)
                try:
                    done = unpack(results, job)
                except BadArchiveError as error:
                    done = local.Done(job, str(error), 0.0)
                yield done
                queue.store({keys[name]: TAKEN})
                continue
            look()
            if (now_s := time.monotonic()) - looked_s >= _LOOK_FOR_WORKERS_S:
                looked_s = now_s
                is_any = bool(queue.memory.holders([keys[name] for name in open_jobs]))
                claimed = [name for name in open_jobs if queue.memory.holders([keys[name]])] if is_any else []
                statuses = queue.memory.recall(f"said {keys[name]}" for name in claimed)
                for name in claimed:
                    import_status(open_jobs[name].output.parent, statuses.get(f"said {keys[name]}", ""))
                busy_s = now_s if is_any else busy_s
                if now_s - busy_s > _ALONE_S:
                    busy_s = float("inf")
                    how = "start one, on any machine that sees the store, with: rag-lab worker"
                    _LOGGER.warning("No worker has taken anything for %.0f s; %s %s", _ALONE_S, how, run)
            running = [name for name in claimed if name in open_jobs]
            poll(running)
            vetoed = {name: why for name, job in open_jobs.items() if (why := veto(job, name in running))}
            if vetoed:
                queue.store({keys[name]: WITHDRAWN for name in vetoed})
            for name, why in vetoed.items():
                (open_jobs[name].output.parent / variant_files.LIVE_FILE).unlink(missing_ok=True)
                yield local.Done(open_jobs.pop(name), why, 0.0, vetoed=True)
            time.sleep(0.25)


def export_status(folder: Path) -> str:
    """Return how a variant at work in `folder` stands, as a text to be sent; '' where it does not say.

    A moment is sent as the seconds since then: the clocks of two machines differ.
    """
    live = variant_files.read_live(folder, variant_files.LiveVariant)
    return json.dumps(asdict(live) | {_BEGAN: time.time() - live.stage_began}) if live else ""


def import_status(folder: Path, status: str) -> None:
    """Write a status that was sent into `folder`, of a variant in its run; nothing where it is no status."""
    try:
        known = json.loads(status)
        live = section.adapter_of(variant_files.LiveVariant).validate_python(
            known | {_BEGAN: time.time() - known[_BEGAN]}
        )
    except (ValueError, TypeError, KeyError, ValidationError):
        return
    if folder.is_dir():
        run_folder.write_json(folder / variant_files.LIVE_FILE, live)


def take_variants(
    run: str, write: Callable[[str], None], dataset: str = "", modules: str = "", idle_s: float = 30.0
) -> int:
    """Take variants of the run of this name until none is left for `idle_s`; return how many were done here.

    `dataset` and `modules` are the paths of the data set and of custom modules on this machine, as at home where empty.
    Whatever ends it early (Ctrl-C, say) ends the variant that runs, which another worker then takes. `write` takes a
    line for each variant. A RagLabError where this machine has another version or corpus, or nobody has announced the
    run.
    """
    queue, n_done = JobQueue(run), 0
    idle_since_s, known = time.monotonic(), False
    with closing(local.Starter()) as starter:
        while True:
            keys = [one["key"] for one in queue.announced().values()]
            known = known or bool(keys)
            if key := queue.claim(keys):
                with queue.memory.keeping([key]):
                    line, is_done = _take(queue, key, dataset, modules, starter)
                write(line)
                n_done += is_done
                idle_since_s = time.monotonic()
                continue
            if queue.memory.holders(keys):  # whoever has it may yet be gone
                idle_since_s = time.monotonic()
            if time.monotonic() - idle_since_s >= idle_s:
                break
            time.sleep(_WAIT_S)
    if not known:
        raise RagLabError(
            f"No sweep has announced the run {run!r} in this store; give the run folder or the name that `rag-lab "
            "sweep --executor workers` tells, and the same RAG_LAB_STORE, or RAG_LAB_HOME, as there."
        )
    return n_done


def _take(queue: JobQueue, key: str, dataset: str, modules: str, starter: local.Starter) -> tuple[str, bool]:
    """Do one job, in a folder that is gone afterwards; return a line on it, and whether it was done."""
    task = queue.task(key)
    looked_s = exported_s = time.monotonic()
    known_status, is_over = "", False

    def poll(_: object) -> None:
        nonlocal looked_s, exported_s, known_status, is_over
        if time.monotonic() - looked_s >= _OVER_EVERY_S:
            looked_s = time.monotonic()
            is_over = queue.is_over(key)
        if time.monotonic() - exported_s >= _STATUS_EVERY_S:
            exported_s = time.monotonic()
            status = export_status(job.output.parent)
            if status and status != known_status:
                known_status = status
                queue.store({f"said {key}": status})

    with machine.scratch_folder("task") as folder:
        job = task.job(Path(folder).resolve(), dataset, modules)
        [done] = local.execute(
            [job], poll=poll, veto=lambda job, runs: "it is over" if is_over else "", starter=starter
        )
        if done.vetoed:
            return f"{task.name}: no longer wanted", False
        try:
            results = pack(done)
        except BadArchiveError as error:
            done = replace(done, reason=str(error))
            for path in (path for path in job.output.parent.iterdir() if path != job.log):
                path.unlink()
            results = pack(done)
    if not queue.is_over(key):
        queue.store({key: results})
    return f"{task.name}: {done.reason or 'ok'} ({done.seconds:.0f} s)", True
