"""What a worker does: it takes variants of a run, one after another, until none is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from rag_lab.errors import RagLabError
from rag_lab.experiment.executors.announced import Announced
from rag_lab.experiment.executors.local import Starter
from rag_lab.experiment.executors.run_task import Withdrawn, run_task

_LOOK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a worker works.

    Args:
        dataset: the path of the dataset on this machine; found by the path or name it has at home, where empty.
        modules: likewise the folder of modules of one's own.
        idle_s: how long to wait for work where there is none.
    """

    dataset: str = ""
    modules: str = ""
    idle_s: float = 30.0


def take_variants(run: str, options: WorkerOptions, tell: Callable[[str], None]) -> int:
    """Take variants of the run of this name until none is left; return how many were done here.

    Whatever ends it early (Ctrl-C, say) ends the variant that runs, which another worker then takes.

    Raises:
        RagLabError: if this machine has another version or corpus, or nobody has announced the run.
    """
    announced, n_done = Announced.of(run), 0
    idle_since_s, known = time.monotonic(), False
    with closing(Starter()) as starter:
        while True:
            keys = announced.keys() or []
            known = known or bool(keys)
            if key := announced.claim(keys):
                with announced.keeping(key):
                    n_done += _take(announced, key, options, starter, tell)
                idle_since_s = time.monotonic()
                continue
            if announced.holders(keys):  # whoever has it may yet be gone
                idle_since_s = time.monotonic()
            if time.monotonic() - idle_since_s >= options.idle_s:
                break
            time.sleep(_LOOK_EVERY_S)
    if not known:
        raise RagLabError(
            f"No sweep has announced the run {run!r} in this store; give the run folder or the name that `rag-lab "
            "sweep --executor workers` tells, and the same RAG_LAB_STORE, or RAG_LAB_HOME, as there."
        )
    return n_done


def _take(
    announced: Announced,
    key: str,
    options: WorkerOptions,
    starter: Starter,
    tell: Callable[[str], None],
) -> int:
    """Do one job, and return whether it was done."""
    task = announced.task(key)
    try:
        ended, parcel = run_task(
            task,
            options.dataset,
            options.modules,
            is_over=lambda: announced.is_over(key),
            tell=lambda said: announced.say(key, said),
            starter=starter,
        )
    except Withdrawn:
        tell(f"{task.name}: no longer wanted")
        return 0
    if not announced.is_over(key):
        announced.hand_in(key, parcel)
    tell(f"{task.name}: {ended.reason or 'ok'} ({ended.seconds:.0f} s)")
    return 1
