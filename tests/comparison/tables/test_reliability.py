from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from rag_lab._kit.home import home
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.conclusions import conclusions
from rag_lab.evaluation.judge_check import Agreement, Discrimination, JudgeCheck, Objects, save_check
from rag_lab.report.page.report_page import to_html
from rag_lab.report.shown_comparison import compare

JUDGE = "llamacpp:smollm2"


@pytest.fixture
def judged(synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Comparison:
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    values = {name: np.linspace(0, 1, 10) for name in ("none", "always")}
    plans = {name: {synthetic.HYDE: name} for name in values}
    metrics = {"ragas.faithfulness": values, "retrieval.ndcg@5": values}
    return compare(synthetic.write_run(tmp_path / "run", plans, metrics, judge=JUDGE).path)


def check(auc: float) -> JudgeCheck:
    return JudgeCheck(
        judge=JUDGE,
        identity={"provider": "llamacpp", "name": "smollm2"},
        dataset="plant_docs",
        dataset_digest="",
        n_questions=20,
        checked_at="2026-11-22T00:00:00+00:00",
        objects=(Objects("ragas.faithfulness", 10, 10),),
        telling=(Discrimination("ragas.faithfulness", "all", auc, auc - 0.05, auc + 0.05, 20, 40),),
        agreement=Agreement("ragas.faithfulness", 10, 1.0, 0.0),
        calls=100,
        seconds=1.0,
    )


def test_a_judge_that_was_not_checked_is_told_with_the_command_that_checks_it(judged: Comparison) -> None:
    (note,) = judged.judges
    assert note.metrics == ("ragas.faithfulness",) and note.passes is None
    assert f"rag-lab judge check {JUDGE}" in note.banner
    page = to_html(judged)
    assert f"<code>rag-lab judge check {JUDGE}</code>" in page and "notice bad" in page
    assert note.sentence in conclusions(judged)
    assert "was not checked" in judged.to_markdown() and "was not checked" in judged._repr_html_()


@pytest.mark.parametrize(("auc", "said"), [(0.5, "is no better than chance"), (0.9, "tells right answers from wrong")])
def test_the_trial_stands_beside_what_was_judged(judged: Comparison, auc: float, said: str) -> None:
    assert home().name == "home"
    save_check(check(auc))
    (note,) = judged.judges
    assert note.passes is (auc > 0.6)
    page = to_html(judged)
    assert said in page
    assert ("notice bad" in page) is (auc < 0.6)


def test_embeddings_are_no_judge(comparison: Comparison) -> None:
    assert comparison.judges == ()
