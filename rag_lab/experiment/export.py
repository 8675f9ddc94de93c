"""What the variants of a run found, as TREC's files: for ranx, ir_measures, PyTerrier and whoever scores rankings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_lab.data.trec import qrels_of, run_of, write_qrels, write_run, write_topics
from rag_lab.data.trec_folder import QRELS, TOPICS
from rag_lab.errors import RagLabError
from rag_lab.experiment.run_folder import RunFolder
from rag_lab.records import Trace

Rankings = dict[str, list[Trace]]  # by the name of the file


def export_run(run: RunFolder, target: Path) -> list[Path]:
    """Write the run's `topics.txt` and `qrels.txt`, and a ranking a variant; return the rankings' paths, as planned.

    A ranking is called `<variant>.run`, with repeats `<variant>.1.run` and so on. A variant without traces has none.

    Args:
        run: of which at least one variant has traces.
        target: a new folder.

    Raises:
        RagLabError: if no variant has traces, or `target` exists or cannot be written.
    """
    rankings = dict(_rankings(run))
    if not rankings:
        raise RagLabError(f"{run.path} has no traces yet: run its sweep first.")
    questions = [trace.question for trace in next(iter(rankings.values()))]
    try:
        target.mkdir(parents=True)
        write_topics(target / TOPICS, questions)
        write_qrels(target / QRELS, qrels_of(questions))
        for name, traces in rankings.items():
            write_run(target / f"{name}.run", run_of(traces), name)
    except FileExistsError:
        raise RagLabError(f"{target} exists and is never overwritten; choose another name or remove it.") from None
    except OSError as error:
        raise RagLabError(f"Cannot write {target}: {error.strerror}; choose another place.") from None
    return [target / f"{name}.run" for name in rankings]


def _rankings(run: RunFolder) -> Iterator[tuple[str, list[Trace]]]:
    for plan in run.variants:
        traces = run.traces(plan.variant_id)
        for repeat in sorted({trace.repeat for trace in traces}):
            name = plan.variant_id if run.repeats == 1 else f"{plan.variant_id}.{repeat + 1}"
            yield name, [trace for trace in traces if trace.repeat == repeat]
