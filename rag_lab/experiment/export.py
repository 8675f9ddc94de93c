"""What the variants of a run found, as TREC's files: for ranx, ir_measures, PyTerrier and whoever scores rankings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rag_lab._kit.wording import counted, some_of
from rag_lab.data.evidence import distinct
from rag_lab.data.formats.trec import Qrels, qrels_of, run_of, write_qrels, write_run, write_topics
from rag_lab.errors import RagLabError
from rag_lab.evaluation.measures.coverage import counted_ranks
from rag_lab.evaluation.metric import find_gap
from rag_lab.records import Problem, Trace
from rag_lab.runs.run_folder import RunFolder


def export_run(run: RunFolder, target: Path | str) -> tuple[list[Path], list[Problem]]:
    """Write the run's `topics.txt` and `qrels.txt`, and a ranking a variant; return the rankings' paths, as planned.

    A ranking is called `<variant>.run`, with repeats `<variant>.1.run` and so on. A variant without traces has none.
    The problems name, for each ranking, the questions that it scores otherwise than the report does.

    Args:
        run: of which at least one variant has traces.
        target: a new folder.

    Raises:
        RagLabError: if no variant has traces or those of one are damaged, or `target` exists or cannot be written.
    """
    finished = {
        plan.variant_id: run.traces(plan.variant_id) for plan in run.variants if run.has_traces(plan.variant_id)
    }
    target = Path(target)
    if not finished:
        raise RagLabError(f"{run.path} has no traces yet: run its sweep first.")
    questions = [trace.question for trace in next(iter(finished.values())) if trace.repeat == 0]
    qrels = qrels_of(questions)
    try:
        target.mkdir(parents=True)
        write_topics(target / "topics.txt", questions)
        write_qrels(target / "qrels.txt", qrels)
        written = [item for one in finished.items() for item in _write_rankings(*one, run.repeats, qrels, target)]
    except FileExistsError:
        raise RagLabError(f"{target} exists and is never overwritten; choose another name or remove it.") from None
    except OSError as error:
        raise RagLabError(f"Cannot write {target}: {error.strerror}; choose another place.") from None
    return [path for path, _ in written], [problem for _, problems in written for problem in problems]


def _write_rankings(
    variant_id: str, traces: Sequence[Trace], repeats: int, qrels: Qrels, target: Path
) -> Iterator[tuple[Path, list[Problem]]]:
    for repeat in range(repeats):
        name = variant_id if repeats == 1 else f"{variant_id}.{repeat + 1}"
        path, of_repeat = target / f"{name}.run", [trace for trace in traces if trace.repeat == repeat]
        write_run(path, run_of(of_repeat), name)
        yield path, _differences(path, of_repeat, qrels)


def _differences(path: Path, traces: Sequence[Trace], qrels: Qrels) -> list[Problem]:
    found = run_of(traces)
    asked = {trace.question.question_id: trace for trace in traces}
    other = [
        name for name, trace in asked.items() if not _is_scored_alike(trace, qrels.get(name, {}), list(found[name]))
    ]
    reason = (
        f"{len(other):,} of {counted(len(asked), 'question')} can have other values than in the report, which scores "
        f"passages, not pages and files, and leaves out what failed: {some_of(other)}."
    )
    return [Problem(str(path), reason)] if other else []


def _is_scored_alike(trace: Trace, relevant: Mapping[str, float], found: Sequence[str]) -> bool:
    """Tell whether the relevant units stand at the same ranks in the report's reckoning and in the files."""
    gap = find_gap(trace, frozenset({"ranking", "evidence"}))
    if gap:
        return gap.status == "not_applicable"
    ours = counted_ranks(trace.ranked, distinct(trace.question.evidence)).ranks
    theirs = [found.index(name) + 1 if name in found else None for name in relevant]
    return (ours.count(None), set(ours)) == (theirs.count(None), set(theirs))
