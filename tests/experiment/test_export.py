from dataclasses import replace
from pathlib import Path

import ir_measures
import pytest

from rag_lab.errors import RagLabError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.experiment.bundle import export_run
from rag_lab.records import Evidence, Hit, Question, StageRecord, Trace
from rag_lab.runs.run_folder import RunFolder, VariantPlan
from rag_lab.runs.variant_files import write_traces

ASKED = [
    Question(
        "q 1", "Which torque?", evidence=(Evidence("a b.pdf", 3, "85 Nm", 0, 9), Evidence("n.txt", None, "", 0, 9))
    ),
    Question("q2", "Which oil?", evidence=(Evidence("n.txt", None, "oil", 0, 9),)),
    Question("file", "Which press?", evidence=(Evidence("a b.pdf"),)),
    Question("none", "Which moon?", answerable=False, evidence=(Evidence("n.txt"),)),
]
PLACES = [("a b.pdf", 3), ("a b.pdf", 4), ("n.txt", None)]


def traces(order: tuple[int, ...], repeat: int = 0) -> list[Trace]:
    hits = [Hit(f"p{n}", f"c{n}", *PLACES[n], 0, 9, 1 / rank) for rank, n in enumerate(order, 1)]
    return [Trace(question, repeat=repeat, ranked=tuple(hits)) for question in ASKED]


def run_of(path: Path, found: dict[str, list[Trace]], repeats: int = 1) -> RunFolder:
    plans = tuple(VariantPlan(name, name) for name in found)
    run = RunFolder(path, "r", "?", "d", plans[0].variant_id, ("retrieval.ndcg@5",), repeats, plans)
    for name, each in found.items():
        run.variant_dir(name).mkdir(parents=True)
        if each:
            write_traces(run.variant_dir(name) / "traces.jsonl", each)
    return run


def test_ir_measures_scores_the_files_as_the_run_was_scored(tmp_path: Path) -> None:
    found = {"base": traces((0, 1, 2)), "mode-bm25": traces((1, 2, 0)), "failed": []}
    written, problems = export_run(run_of(tmp_path / "run", found), tmp_path / "out")
    assert [path.name for path in written] == ["base.run", "mode-bm25.run"] and problems == []
    topics = (tmp_path / "out/topics.txt").read_text().splitlines()
    assert topics[1::4] == [f"<num> Number: {q.question_id.replace(' ', '%20')}" for q in ASKED]
    assert topics[2::4] == [f"<title> {q.text}" for q in ASKED]
    for path in written:
        ours = [score.value for score in evaluate(found[path.stem], ["retrieval.ndcg@5"]) if score.value is not None]
        assert len(ours) == 3 and theirs(path) == pytest.approx(sum(ours) / len(ours))


def theirs(path: Path) -> float:
    """Return what ir_measures makes of a ranking and the judgements beside it."""
    qrels = ir_measures.read_trec_qrels(str(path.parent / "qrels.txt"))
    measure = ir_measures.nDCG @ 5
    return float(ir_measures.calc_aggregate([measure], qrels, ir_measures.read_trec_run(str(path)))[measure])


def test_questions_that_the_files_score_otherwise_are_named(tmp_path: Path) -> None:
    hits = (Hit("p0", "c0", "a b.pdf", 3, 0, 9, 2.0), Hit("p1", "c1", "a b.pdf", 3, 9, 20, 1.0))
    late = Question("late", "?", evidence=(Evidence("a b.pdf", 3, "quote", 10, 15),))  # in the page's second passage
    lost = Question("lost", "?", evidence=(Evidence("a b.pdf", 3),))
    failed = Trace(lost, stages=(StageRecord("retrieve", "failed", "out of memory"),))
    found = {"base": [*traces((0, 1, 2)), Trace(late, ranked=hits), failed]}
    (path,), (problem,) = export_run(run_of(tmp_path / "run", found), tmp_path / "out")
    assert problem.path == str(path)
    assert "2 of 6 questions can have other values" in problem.reason and problem.reason.endswith(": late and lost.")


def test_each_repeat_has_its_ranking(tmp_path: Path) -> None:
    repeats = [*traces((0, 1)), *[replace(trace, repeat=1) for trace in traces((2,))]]
    written, _ = export_run(run_of(tmp_path / "run", {"base": repeats}, repeats=2), tmp_path / "out")
    assert [path.name for path in written] == ["base.1.run", "base.2.run"]
    assert written[1].read_text().split()[2] == "n.txt"


def test_a_run_with_a_damaged_file_leaves_no_half_export(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", {"base": traces((0,)), "cut": traces((1,))})
    path = run.variant_dir("cut") / "traces.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(RagLabError, match="line 4 is no trace"):
        export_run(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten_and_a_run_without_traces_is_refused(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", {"base": traces((0,))})
    (tmp_path / "out").mkdir()
    with pytest.raises(RagLabError, match="never overwritten"):
        export_run(run, tmp_path / "out")
    with pytest.raises(RagLabError, match="no traces yet"):
        export_run(run_of(tmp_path / "other", {"base": []}), tmp_path / "new")
    assert not (tmp_path / "new").exists()
