"""What the variants of a run found, as TREC's files: for ranx, ir_measures, PyTerrier and whoever scores rankings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_lab.data.trec import run_of, write_run
from rag_lab.data.trec_folder import write_judged
from rag_lab.errors import RagLabError
from rag_lab.experiment.run_folder import RunFolder


def export_run(run: RunFolder, target: Path) -> list[Path]:
    """Write the run's `topics.txt` and `qrels.txt`, and a ranking a variant; return the rankings' paths, as planned.

    A ranking is called `<variant>.run`, with repeats `<variant>.1.run` and so on. A variant without traces has none.

    Args:
        run: of which at least one variant has traces.
        target: a new folder.

    Raises:
        RagLabError: if no variant has traces, or `target` exists or cannot be written.
    """
    finished = [plan.variant_id for plan in run.variants if run.has_traces(plan.variant_id)]
    if not finished:
        raise RagLabError(f"{run.path} has no traces yet: run its sweep first.")
    try:
        target.mkdir(parents=True)
        write_judged(target, [trace.question for trace in run.traces(finished[0]) if trace.repeat == 0])
        return [path for variant_id in finished for path in _write_rankings(run, variant_id, target)]
    except FileExistsError:
        raise RagLabError(f"{target} exists and is never overwritten; choose another name or remove it.") from None
    except OSError as error:
        raise RagLabError(f"Cannot write {target}: {error.strerror}; choose another place.") from None


def _write_rankings(run: RunFolder, variant_id: str, target: Path) -> Iterator[Path]:
    traces = run.traces(variant_id)
    for repeat in range(run.repeats):
        name = variant_id if run.repeats == 1 else f"{variant_id}.{repeat + 1}"
        path = target / f"{name}.run"
        write_run(path, run_of(trace for trace in traces if trace.repeat == repeat), name)
        yield path
