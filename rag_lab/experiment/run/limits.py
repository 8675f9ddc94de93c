"""What holds a sweep back: its limits on money, calls and time, and another sweep in its run folder.

Kernels book their calls in the run's ledger, and the sweep pulls up.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from rag_lab._kit.home import usable_home
from rag_lab.errors import RagLabError
from rag_lab.experiment.config import Limits
from rag_lab.experiment.executors.job import Done, Job
from rag_lab.experiment.executors.job_queue import FILE
from rag_lab.experiment.manifest import VariantState
from rag_lab.memory.ledger import LEDGER_VARIABLE, PAYER_VARIABLE, Ledger, Used
from rag_lab.memory.results import Memory
from rag_lab.runs import run_folder as files
from rag_lab.runs.live_file import LIVE_FILE

_LOOK_EVERY_S = 0.5


def ledger_of(run: files.RunFolder) -> Ledger:
    """Return the ledger of a run; it may be empty."""
    return Ledger(run.path / files.LEDGER_FILE)


class BudgetGuard:
    """Begins a start of the sweep in the run's ledger and says which variants must not start or go on.

    Once a call was refused, no variant starts any more. A running one ends at its first refused call and may finish
    where it needs none; when the time is up, all end. What other sweeps have used `elsewhere` counts for the limits.
    """

    def __init__(self, run: files.RunFolder, limits: Limits, elsewhere: Used | None = None) -> None:
        self.run = run
        self.ledger = ledger_of(run)
        self.ledger.start(limits.cost_usd, limits.calls, limits.minutes, elsewhere or Used())
        self._looked_s = float("-inf")
        self._refused: dict[str, str] = {}
        self._out_of_time = ""

    def environment(self, variant_id: str) -> dict[str, str]:
        """Return what makes a variant's kernel book its calls."""
        return {LEDGER_VARIABLE: str(self.ledger.path.resolve()), PAYER_VARIABLE: variant_id}

    def veto(self, job: Job, runs: bool) -> str:
        """Return why a job must not start or go on, or ''."""
        if time.monotonic() - self._looked_s >= _LOOK_EVERY_S:
            self._look()
        of_others = "" if runs else next(iter(self._refused.values()), "")
        return self._out_of_time or self._refused.get(job.name, "") or of_others

    def stopped(self, done: Done) -> VariantState | None:
        """Return the state of a variant that a limit stopped, or None; of its results so far only the memory is left.

        A kernel may have come to its end after a call was refused: what it wrote is not what was asked for.
        """
        self._look()
        reason = done.reason if done.vetoed else self._refused.get(done.job.name, "")
        if not reason:
            return None
        for name in (files.TRACES_FILE, files.SCORES_FILE, files.RECORD_FILE):
            (self.run.variant_dir(done.job.name) / name).unlink(missing_ok=True)
        return VariantState(done.job.name, "stopped", reason, done.seconds)

    def _look(self) -> None:
        self.ledger.tick()
        self._refused, self._out_of_time = self.ledger.refused(), self.ledger.out_of_time()
        self._looked_s = time.monotonic()


def limits_used(limits: Limits, run: files.RunFolder) -> dict[str, Any]:
    """Return for the manifest each limit, and what all starts of the sweep have used of it."""
    used = ledger_of(run).used()
    return {
        name: {"limit": getattr(limits, name), "used": round(getattr(used, name), 6)}
        for name in ("cost_usd", "calls", "minutes")
    }


@contextmanager
def alone_in_store(path: Path) -> Iterator[str]:
    """Yield the name of the run in `path`, which is held in the store in this block."""
    name, memory = files.run_name(path), Memory(usable_home() / FILE)
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
        others = {entry.name for entry in path.iterdir()} - {files.LOCK_FILE, LIVE_FILE, files.NAME_FILE}
    except OSError as error:
        raise RagLabError(f"Cannot write to {path}: {error.strerror}; give another folder with --out.") from None
    if others and files.PLAN_FILE not in others:
        raise RagLabError(f"{path} holds something else than a run; give an empty or a new folder with --out.")
    try:
        with FileLock(path / files.LOCK_FILE, timeout=0):
            yield
    except Timeout:
        raise RagLabError(
            f"Another sweep is running in {path}; wait for it, or give another folder with --out."
        ) from None
