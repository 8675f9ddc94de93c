"""What a worker does: it takes variants of a run, one after another, until none is left."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from rag_lab._kit.machine import Process, scratch_folder
from rag_lab.errors import RagLabError
from rag_lab.experiment.executors import local
from rag_lab.experiment.executors.job_queue import JobQueue, export_status
from rag_lab.experiment.executors.task import BadArchiveError, Ended, pack

_WAIT_S = 0.5
_OVER_EVERY_S = 2.0
_STATUS_EVERY_S = 3.0  # who looks on, looks every few seconds


def take_variants(
    run: str, write: Callable[[str], None], dataset: str = "", modules: str = "", idle_s: float = 30.0
) -> int:
    """Take variants of the run of this name until none is left for `idle_s`; return how many were done here.

    `dataset` and `modules` are the paths of the data set and of custom modules on this machine, as at home where empty.
    Whatever ends it early (Ctrl-C, say) ends the variant that runs, which another worker then takes. `write` takes a
    line for each variant.

    Raises:
        RagLabError: if this machine has another version or corpus, or nobody has announced the run.
    """
    queue, n_done = JobQueue.of(run), 0
    idle_since_s, known = time.monotonic(), False
    with closing(local.Starter()) as starter:
        while True:
            keys = queue.keys() or []
            known = known or bool(keys)
            if key := queue.claim(keys):
                with queue.keeping(key):
                    line, is_done = _take(queue, key, dataset, modules, starter)
                write(line)
                n_done += is_done
                idle_since_s = time.monotonic()
                continue
            if queue.holders(keys):  # whoever has it may yet be gone
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
    """Do one job, in a folder that is gone afterwards; return a line on it, and whether it was done.

    While it runs, it is looked up every few seconds whether it is over, and how it stands is stored where that is new.
    """
    task = queue.task(key)
    looked_s = exported_s = time.monotonic()
    known_status = ""

    def veto(job: object, runs: bool) -> str:
        nonlocal looked_s
        if not runs or time.monotonic() - looked_s < _OVER_EVERY_S:
            return ""
        looked_s = time.monotonic()
        return "it is over" if queue.is_over(key) else ""

    def poll(running: object) -> None:
        nonlocal exported_s, known_status
        if time.monotonic() - exported_s < _STATUS_EVERY_S:
            return
        exported_s = time.monotonic()
        status = export_status(job.output.parent)
        if status and status != known_status:
            known_status = status
            queue.write_status(key, status)

    with scratch_folder("task") as folder:
        job = task.job(Path(folder).resolve(), dataset, modules)
        [done] = local.execute([job], poll=poll, veto=veto, starter=starter)
        if done.vetoed:
            return f"{task.name}: no longer wanted", False
        ended = Ended(done.reason, done.seconds, Process.this().host)
        try:
            results = pack(job.output.parent, ended)
        except BadArchiveError as error:
            ended = replace(ended, reason=str(error))
            for path in job.output.parent.iterdir():
                if path != job.log:
                    path.unlink()
            results = pack(job.output.parent, ended)
    if not queue.is_over(key):
        queue.hand_in(key, results)
    return f"{task.name}: {ended.reason or 'ok'} ({ended.seconds:.0f} s)", True
