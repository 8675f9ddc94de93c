"""Sections stand everywhere, the box on top has a line each; texts and metrics keep their direction."""

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from run_folder_fixture import build_unlabelled
from synthetic_run import write_run

from rag_lab.comparison.across import compare_runs
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.conclusions import conclusions, study_conclusion
from rag_lab.comparison.findings.verdict_sentences import module_rows
from rag_lab.report import sections
from rag_lab.report.compare_text import compare_text
from rag_lab.report.figures import class_figure, quality_figure
from rag_lab.report.page.report_page import overview_html, question_html, to_html
from rag_lab.report.score_tables import scores_tables
from rag_lab.report.sections import verdict_box
from rag_lab.report.shown_comparison import compare
from rag_lab.report.table import Table


def test_every_row_of_the_table_is_in_one_line_or_in_the_headline(wide: Comparison) -> None:
    lines = dict(verdict_box(wide).lines)
    assert list(lines) == ["Verdict", "Cannot tell", "Without scores", "Answers", "Do next"]
    for row in module_rows(wide):
        line = {"cannot tell": "Cannot tell", "failed": "Without scores", "worse": "Leave out"}.get(row.word)
        assert line is None or wide.called(row.variant_id) in lines[line][0]
    assert lines["Do next"][0].startswith("A margin, the largest loss")


def test_what_is_used_has_its_price_and_what_is_said_in_the_box_is_not_said_again(grid: Comparison) -> None:
    box = verdict_box(grid)
    lines = dict(box.lines)
    assert lines["Use"][0].startswith("D (always-query_likelihood): it raises")
    assert lines["Price"] == ("0.10 s a question; with A (none-none) 0.10 s.",)
    page = to_html(grid)
    for sentence in (lines["Use"][0], *box.details[:1]):
        assert page.count(sentence[:40]) == 1


def test_without_labels_it_says_what_to_do_next_beside_a_picture_of_what_changed(tmp_path: Path) -> None:
    found = compare(build_unlabelled(tmp_path / "run").path)
    lines = dict(verdict_box(found).lines)
    assert lines["Undecided"][0].startswith("No question has a label")
    assert any("rag-lab ask QUESTION" in sentence for sentence in lines["Do next"])
    for page in (to_html(found), overview_html(found)):
        assert page.index("Do next") < page.index('class="bar" style="--w:67%"') < page.index("The questions that")


def test_caveats_are_chips_and_only_where_there_are_some(wide: Comparison, grid: Comparison) -> None:
    assert [title for title, _ in verdict_box(wide).chips] == ["Clusters of questions"]
    assert verdict_box(grid).chips == () and 'class="chip"' not in to_html(grid)


def test_an_entry_is_a_section_everywhere(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("Moons by planet", ("planet", "moons"), (("Mars", "2"),))
    added = sections.Section(
        "moons", "How many moons", "Method", sentences=lambda c: ["Few."], tables=lambda c: {"moons": [table]}
    )
    monkeypatch.setattr(sections, "SECTIONS", (*sections.SECTIONS, added))
    page = to_html(comparison)
    assert '<h2 id="h-moons">How many moons</h2>' in page and "<td>Mars</td>" in page
    assert "<summary>How many moons</summary>" in overview_html(comparison)
    assert "## How many moons\n\n- Few.\n\n**Moons by planet**" in comparison.to_markdown()
    assert compare_text(comparison.run.path, only=["moons"]).startswith("Moons by planet")
    monkeypatch.setattr(sections, "SECTIONS", sections.SECTIONS[:-1])
    assert "moons" not in to_html(comparison)


TURN = "\u05d0"  # a letter of Hebrew; marks that turn the direction are shown as such (test_visible)
OUTSIDE = ("text", "quote", "content", "source", "question_id", "answers", "rejected_citations", "thinking") + (
    *("hypothetical", "search_query", "proposed_query", "phrasings", "raw_text", "prompt"),
)


class Turns(HTMLParser):
    """Collects the texts that hold the letter, by whether they stand in a `bdi`."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.depth = 0
        self.held: list[str] = []
        self.loose: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.depth += tag == "bdi"

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == "bdi"

    def handle_data(self, data: str) -> None:
        if TURN in data:
            (self.held if self.depth else self.loose).append(data)


def turned(value: Any, inside: bool = False) -> Any:
    """Put the letter before every text that comes from outside."""
    if isinstance(value, dict):
        return {key: turned(one, key in OUTSIDE) for key, one in value.items()}
    if isinstance(value, list):
        return [turned(one, inside) for one in value]
    return TURN + value if inside and isinstance(value, str) else value


@pytest.fixture(scope="module")
def hostile(build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = build.build_run(tmp_path_factory.mktemp("turned") / "run", 8, 3)
    for file in run.path.glob("variants/*/traces.jsonl"):
        lines = [json.dumps(turned(json.loads(line))) for line in file.read_text().splitlines()]
        file.write_text("\n".join(lines) + "\n")
    scores = run.scores()
    scores.assign(question_id=TURN + scores["question_id"].astype(str)).to_parquet(run.path / "scores.parquet")
    return run.path


def test_texts_from_outside_keep_their_direction_to_themselves(hostile: Path) -> None:
    comparison = compare(hostile)
    pages = [to_html(comparison), *(question_html(comparison, name) for name in comparison.questions["question_id"])]
    pages += [trace._repr_html_() for traces in comparison.traces.values() for trace in traces]
    for page in pages:
        found = Turns(page)
        assert found.loose == []
        assert found.held


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


@pytest.mark.parametrize(
    ("metric", "why"), [("retrieval.ndcg@5", ", the metric is blind to it: it reads the ranking"), ("my.metric", "")]
)
def test_what_makes_no_difference_is_not_among_what_the_data_cannot_tell(tmp_path: Path, metric: str, why: str) -> None:
    base = np.tile([0.2, 0.5, 0.8], 10)
    noisy = base + np.random.default_rng(0).uniform(-0.1, 0.1, 30)
    plans = {"base": {}, "same": {"rerank.final_k": 3}, "noisy": {"query.hyde": "always"}}
    write_run(tmp_path / "run", plans, {metric: {"base": base, "same": base, "noisy": noisy}})
    lines = dict(verdict_box(compare(tmp_path / "run")).lines)
    assert lines["No difference"] == (f"B (same){why}",)
    assert lines["Cannot tell"][0].startswith("C (noisy) ") and "same" not in lines["Cannot tell"][0]
