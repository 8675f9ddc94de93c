"""What the variants of a run found, as TREC's files: for ranx, ir_measures, PyTerrier and whoever scores rankings."""

from collections.abc import Sequence
from pathlib import Path

from rag_lab._kit.wording import counted, some_of
from rag_lab.data.formats import Qrels, qrels_of, run_of, write_qrels, write_run, write_topics
from rag_lab.data.labels import distinct
from rag_lab.errors import RagLabError
from rag_lab.evaluation.coverage import counted_ranks
from rag_lab.evaluation.metric import find_gap
from rag_lab.records import Problem, Trace
from rag_lab.runs.run_folder import RunFolder


def export_run(run: RunFolder, target: Path | str) -> tuple[list[Path], list[Problem]]:
    """Write the run's `topics.txt` and `qrels.txt`, and a ranking a variant; return the rankings' paths, as planned.

    A ranking is called `<variant>.run`, with repeats `<variant>.1.run` and so on. A variant without traces has none.
    The problems name, for each ranking, the questions that it scores otherwise than the report does.
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
        written, problems = list[Path](), list[Problem]()
        for variant_id, traces in finished.items():
            for repeat in range(run.repeats):
                name = variant_id if run.repeats == 1 else f"{variant_id}.{repeat + 1}"
                of_repeat = [trace for trace in traces if trace.repeat == repeat]
                written.append(target / f"{name}.run")
                write_run(written[-1], run_of(of_repeat), name)
                problems += _differences(written[-1], of_repeat, qrels)
    except FileExistsError:
        raise RagLabError(f"{target} exists and is never overwritten; choose another name or remove it.") from None
    except OSError as error:
        raise RagLabError(f"Cannot write {target}: {error.strerror}; choose another place.") from None
    return written, problems


def _differences(path: Path, traces: Sequence[Trace], qrels: Qrels) -> list[Problem]:
    """Return a problem where relevant units stand at other ranks in the report's reckoning than in the files."""
    rankings, others = run_of(traces), list[str]()
    for name, trace in {trace.question.question_id: trace for trace in traces}.items():
        if gap := find_gap(trace, frozenset({"ranking", "evidence"})):
            is_alike = gap.status == "not_applicable"
        else:
            found = list(rankings[name])
            ours = counted_ranks(trace.ranked, distinct(trace.question.evidence)).ranks
            theirs = [found.index(unit) + 1 if unit in found else None for unit in qrels.get(name, {})]
            is_alike = (ours.count(None), set(ours)) == (theirs.count(None), set(theirs))
        if not is_alike:
            others.append(name)
    reason = (
        f"{len(others):,} of {counted(len(rankings), 'question')} can have other values than in the report, which "
        f"scores passages, not pages and files, and leaves out what failed: {some_of(others)}."
    )
    return [Problem(str(path), reason)] if others else []
