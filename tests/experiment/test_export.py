from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import ir_measures
import pytest

from rag_lab.data.trec import read_topics
from rag_lab.errors import RagLabError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.experiment.export import export_run
from rag_lab.experiment.run_folder import RunFolder, VariantPlan
from rag_lab.records import Evidence, Hit, Question, Trace
from rag_lab.trace_file import write_traces

ASKED = [
    Question(
        "q 1", "Which torque?", evidence=(Evidence("a b.pdf", 3, "85 Nm", 0, 9), Evidence("n.txt", None, "", 0, 9))
    ),
    Question("q2", "Which oil?", evidence=(Evidence("n.txt", None, "oil", 0, 9),)),
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
    written = export_run(run_of(tmp_path / "run", found), tmp_path / "out")
    assert [path.name for path in written] == ["base.run", "mode-bm25.run"]
    assert read_topics(tmp_path / "out/topics.txt") == {"q 1": "Which torque?", "q2": "Which oil?"}
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "out/qrels.txt")))
    for path in written:
        theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ 5], qrels, ir_measures.read_trec_run(str(path)))
        ours = [score.value for score in evaluate(found[path.stem], ["retrieval.ndcg@5"])]
        assert theirs[ir_measures.nDCG @ 5] == pytest.approx(sum(ours) / len(ours))


def test_each_repeat_has_its_ranking(tmp_path: Path) -> None:
    repeats = [*traces((0, 1)), *[replace(trace, repeat=1) for trace in traces((2,))]]
    written = export_run(run_of(tmp_path / "run", {"base": repeats}, repeats=2), tmp_path / "out")
    assert [path.name for path in written] == ["base.1.run", "base.2.run"]
    assert written[1].read_text().split()[2] == "n.txt"


def test_nothing_is_overwritten_and_a_run_without_traces_is_refused(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", {"base": traces((0,))})
    (tmp_path / "out").mkdir()
    with pytest.raises(RagLabError, match="never overwritten"):
        export_run(run, tmp_path / "out")
    with pytest.raises(RagLabError, match="no traces yet"):
        export_run(run_of(tmp_path / "other", {"base": []}), tmp_path / "new")
    assert not (tmp_path / "new").exists()
