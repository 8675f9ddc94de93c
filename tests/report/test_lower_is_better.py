"""A metric of which less is better: the report of mirrored scores says the same of every variant."""

import json
import shutil
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from rag_lab.comparison.across import compare_runs
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.conclusions import conclusions, study_conclusion
from rag_lab.report.figures import class_figure, quality_figure
from rag_lab.report.page.report_page import to_html
from rag_lab.report.score_tables import scores_tables
from rag_lab.report.shown_comparison import compare

NOISE = "ragas.noise_sensitivity"
PLANS = {"base": {}, "noisy": {"rerank.final_k": 9}, "calm": {"rerank.final_k": 3}, "failing": {"rerank.final_k": 2}}


def mirrored(run: Path, path: Path) -> Path:
    """Copy a run with 1 - score in place of each score, as those of a metric of which less is better."""
    shutil.copytree(run, path)
    plan = json.loads((path / "plan.json").read_text())
    (path / "plan.json").write_text(json.dumps(plan | {"metrics": [NOISE]}))
    scores = compare(run).scores
    scores.assign(metric=NOISE, value=1 - scores["value"]).to_parquet(path / "scores.parquet", index=False)
    return path


def unsigned(verdicts: pd.Series) -> list[str]:
    """Return verdicts without the sign of the difference that they may name."""
    return [str(one).replace("+", "").replace("−", "") for one in verdicts]


@pytest.fixture(scope="module")
def noisy(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """30 questions: noisy is far worse than the baseline, calm better, failing the same where it does not fail."""
    base = np.random.default_rng(1).uniform(0.2, 0.4, 30)
    failing = np.where(np.arange(30) < 15, np.nan, base)
    shift = np.linspace(0.1, 0.2, 30)
    values = {"base": base, "noisy": base + 2 * shift, "calm": base - shift, "failing": failing}
    path = tmp_path_factory.mktemp("direction") / "run"
    return compare(synthetic.write_run(path, PLANS, {NOISE: values}).path)


def test_less_is_better_in_verdict_order_and_counts(noisy: Comparison) -> None:
    rows = {name: noisy.difference(name, NOISE) or {} for name in PLANS if name != "base"}
    assert (rows["noisy"]["verdict"], rows["calm"]["verdict"]) == ("worse", "better")
    assert rows["noisy"]["difference"] > 0 > rows["calm"]["difference"]
    assert [rows["noisy"][name] for name in ("wins", "ties", "losses")] == [0, 0, 30]
    assert list(noisy.ranking["variant_id"]) == ["calm", "base", "noisy", "failing"]
    failing = noisy.cell("failing", NOISE) or {}
    assert failing["best"] < failing["mean"] < failing["worst"] == pytest.approx(noisy.ranking["ranked_by"].iloc[-1])
    assert (
        scores_tables(noisy)["order"][0].title
        == f"Order in {NOISE} (lower is better), failures counted as its worst value"
    )


def test_less_is_better_in_every_sentence(noisy: Comparison) -> None:
    told = " ".join(conclusions(noisy))
    assert f"C (calm) lowers {NOISE} by 0.150, which is better, against the baseline" in told
    assert f"B (noisy) raises {NOISE} by 0.300, which is worse, against the baseline" in told
    assert "30 questions better, 0 equal, 0 worse" in told and "0 questions better, 0 equal, 30 worse" in told
    effects = " ".join(noisy.effects.sentences(NOISE))
    assert "rerank.final_k=3 takes off −0.150" in effects and "which is better, in" in effects
    assert "rerank.final_k=9 adds +0.300" in effects and "which is worse, in" in effects


def test_less_is_better_on_the_page_in_markdown_and_in_figures(noisy: Comparison) -> None:
    page = to_html(noisy)
    assert "reliably worse than the baseline" in page
    assert f"| {NOISE.replace('_', chr(92) + '_')} (lower is better) |" in noisy.to_markdown()
    assert [noisy.reliable(name, NOISE) for name in PLANS] == [0, -1, 1, 0]
    markers = [line.get_marker() for line in quality_figure(noisy, NOISE).axes[0].lines]
    assert markers.index("v") < markers.index("^")  # noisy stands above calm


@pytest.mark.parametrize("name", ["grid", "routed"])
def test_mirrored_scores_have_the_same_report(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    plain: Comparison = request.getfixturevalue(name)
    turned = compare(mirrored(plain.run.path, tmp_path / "mirrored"))
    assert unsigned(turned.differences["verdict"]) == unsigned(plain.differences["verdict"])
    assert unsigned(turned.effects.table["verdict"]) == unsigned(plain.effects.table["verdict"])
    for column in ("wins", "losses"):
        assert list(turned.differences[column]) == list(plain.differences[column])
    assert list(-turned.differences["difference"]) == pytest.approx(list(plain.differences["difference"]))
    assert list(turned.ranking["variant_id"]) == list(plain.ranking["variant_id"])


def test_mirrored_scores_have_the_same_routing(routed: Comparison, tmp_path: Path) -> None:
    turned = compare(mirrored(routed.run.path, tmp_path / "mirrored"))
    ours, plain = turned.routing[0], routed.routing[0]
    assert ours.learned is not None and plain.learned is not None and plain.mistakes is not None
    assert ours.learned.class_to_hyde == plain.learned.class_to_hyde
    assert ours.learned.gains["none"].mean == pytest.approx(-(plain.learned.gains["none"].mean or 0.0))
    assert ours.learned.reasons["fuzzy"].startswith("on: HyDE changes the mean by −")
    assert list(ours.by_class["verdict"]) == list(plain.by_class["verdict"])
    for one, other in ((ours.question_ceiling, plain.question_ceiling), (ours.class_ceiling, plain.class_ceiling)):
        assert one is not None and other is not None and one.best_arm == other.best_arm
        assert (one.gain, one.low, one.high) == pytest.approx((-other.gain, -other.high, -other.low))
    assert list(ours.mistakes["cost"]) == pytest.approx(list(plain.mistakes["cost"]))
    assert (
        "(lower is better) by −" in study_conclusion(ours)
        and ": a rule learned from these questions pays" in study_conclusion(plain)
        and ": a rule learned from these questions pays" in study_conclusion(ours)
    )


def test_mirrored_scores_have_the_same_tints(routed: Comparison, tmp_path: Path) -> None:
    turned = compare(mirrored(routed.run.path, tmp_path / "mirrored"))
    ours, plain = class_figure(turned, NOISE), class_figure(routed, str(routed.main_metric))
    for one, other in zip(ours.axes[0].patches, plain.axes[0].patches, strict=True):
        assert one.get_facecolor() == pytest.approx(other.get_facecolor())


def test_two_runs_are_compared_in_the_direction_of_the_metric(
    noisy: Comparison, synthetic: ModuleType, tmp_path: Path
) -> None:
    base = noisy.scores.loc[noisy.scores["variant_id"] == "base", "value"].to_numpy(dtype=float)
    run = synthetic.write_run(tmp_path / "later", {"base": {}}, {NOISE: {"base": base + np.linspace(0.1, 0.2, 30)}})
    found = compare_runs(noisy.run.path, run.path)
    assert list(found.same["verdict"]) == ["worse"] and list(found.same["losses"]) == [30]
    assert "better" in set(found.differences["verdict"])


def test_words_are_a_cost(synthetic: ModuleType, tmp_path: Path) -> None:
    words = {"base": np.linspace(10, 20, 30), "noisy": np.linspace(100, 120, 30)}
    plans = {name: PLANS[name] for name in words}
    shares = {name: column / 200 for name, column in words.items()}
    metrics = {"answer.words": words, synthetic.MAIN: shares, "own.metric": shares}
    found = compare(synthetic.write_run(tmp_path / "run", plans, metrics).path)
    assert (found.cost_metrics, found.main_metric) == (("answer.words",), synthetic.MAIN)
    assert set(found.differences["metric"]) == {synthetic.MAIN, "own.metric"}
    assert set(found.differences["verdict"]) == {"better"}  # more is better in a metric that nobody knows
