"""What pipelines, configurations, datasets and plans show of themselves."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from browser import browser, needs_browser, watch
from hostile_text import EVIL, controls_in, write_evil_dataset
from run_folder_fixture import HOSTILE, build_run
from small_dataset import write_dataset

from rag_lab import Dataset, Pipeline, PipelineConfig
from rag_lab._kit.wording import short_verdict
from rag_lab.config import dotted_keys
from rag_lab.evaluation.evaluate import Scores
from rag_lab.experiment.plan import plan
from rag_lab.notebook.bench.toggles import owner_of
from rag_lab.notebook.views.pipeline_view import KEYS, boxes, summary_table
from rag_lab.pipeline import SLOTS
from rag_lab.records import Score
from rag_lab.report.page.templates import prose
from rag_lab.report.shown_comparison import ShownComparison, compare


class Shortest:
    """A reranker that says what it is."""

    def __repr__(self) -> str:
        return f"Shortest(keep=4) {HOSTILE}"


def shown(thing: Any) -> str:
    return str(thing._repr_html_())


def test_a_pipeline_shows_itself_before_anything_is_read(tmp_path: Path) -> None:
    pipeline = Pipeline("no such dataset", home=tmp_path / "home").set("rerank.name", "query_likelihood")
    assert "Pipeline on no such dataset" in shown(pipeline) and "Pipeline on no such dataset" in str(pipeline)
    assert repr(pipeline) == "Pipeline('no such dataset', PipelineConfig(rerank.name='query_likelihood'))"
    assert not (tmp_path / "home").exists()


def test_a_pipeline_is_drawn_with_what_is_off_what_differs_and_what_is_replaced() -> None:
    pipeline = Pipeline("docs").set({"query.hyde_n": 2, "retrieval.mode": "dense"}).replace(rerank=Shortest())
    drawn = {box.name: box for box in boxes(pipeline.config, pipeline.replaced)}
    assert not drawn["HyDE"].is_on and drawn["HyDE"].changes == ("query.hyde_n = 2",)
    assert drawn["Search"].changes == ("retrieval.mode = dense",)
    assert drawn["Reranking"].is_on and drawn["Reranking"].said.startswith("Shortest(keep=4)")
    assert not drawn["Selection"].is_on and not drawn["Selection"].changes
    assert "HyDE            off" in str(pipeline)
    assert "<script>alert" not in shown(pipeline) and "&lt;script&gt;" in shown(pipeline)


def test_a_configuration_shows_what_differs_from_the_file_that_it_came_from(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("rerank:\n  name: query_likelihood\nseed: 3\n")
    loaded = PipelineConfig.load(str(tmp_path / "mine.yaml"))
    assert "from mine.yaml: nothing differs" in str(loaded)
    changed = loaded.override({"seed": 4}).override({"query.hyde": "always"})
    assert [(one.key, one.value, one.before) for one in changed.changes()] == [
        ("query.hyde", "always", "none"),
        ("seed", 4, 3),
    ]
    assert "from mine.yaml: differs in 2" in shown(changed) and "in mine.yaml" in shown(changed)
    assert "The whole, as YAML" in shown(changed) and "query_likelihood" in shown(changed)


def test_where_a_configuration_came_from_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("seed: 3\n")
    loaded, parsed = PipelineConfig.load(tmp_path / "mine.yaml"), PipelineConfig.parse({"seed": 3})
    assert loaded == parsed and repr(loaded) == repr(parsed) == "PipelineConfig(seed=3)"
    assert loaded.identity == parsed.identity and loaded.model_dump() == parsed.model_dump()
    assert [one.key for one in parsed.changes()] == ["seed"]


def test_a_dataset_tells_what_it_holds(tmp_path: Path) -> None:
    questions = [
        {"id": "a", "question": "Which valve?", "answers": ["RV1"], "class": "specific", "tags": ["table"]},
        {"id": "b", "question": "And when not?", "answerable": False, "class": "fuzzy"},
        {"id": "c", "question": "x", "class": "no such class"},
    ]
    dataset = Dataset.load(write_dataset(tmp_path / "d", "valves", questions))
    for page in (shown(dataset), str(dataset)):
        told = " ".join(page.split())
        assert "Dataset valves" in told
        assert "7, of which 5 can be answered" in told and "specific 3, fuzzy 2" in told and "table 1" in told
        assert "4 have an answer and 3 have evidence" in told and "1 problem; the first" in told
        assert "Which valve?" in told and "file" in told


def test_a_plan_is_the_dry_run_as_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    folder = write_dataset(tmp_path / "d", "valves", [{"id": "a", "question": HOSTILE, "answers": ["RV1"]}])
    made = plan(
        {
            "name": "mine", "question": f"Is it {HOSTILE}?", "dataset": str(folder), "metrics": ["retrieval.ndcg@5"],
            "base": {"answer": {"name": "none"}, "query": {"rewrite": "none", "hyde": "none"}},
            "factors": {"retrieval.mode": ["dense", "bm25"]},
        }
    )  # fmt: skip
    page = shown(made)
    assert "retrieval.mode = bm25" in page and "remembered" in page and "sentence_transformers:minilm" in page
    assert "<script>alert" not in page and "&lt;script&gt;" in page
    assert max(map(len, str(made).splitlines())) <= 100 and "retrieval.mode = bm25" in str(made)


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    dataset = Dataset.load(write_evil_dataset(tmp_path / "evil"))
    for thing in (
        dataset,
        *dataset.questions,
        Pipeline(dataset),
        PipelineConfig().override({"models.hyde": "a:" + EVIL}),
    ):
        assert controls_in(shown(thing)) == [] == controls_in(str(thing))
        assert max(map(len, str(thing).splitlines())) <= 100


def test_every_key_that_can_be_changed_has_its_box() -> None:
    assert {owner_of(key, KEYS) for key in dotted_keys()} == {box.name for box in boxes(PipelineConfig(), {})}


def test_an_object_in_any_slot_is_shown_in_one_box() -> None:
    for slot in SLOTS:
        assert sum("mine" in box.said for box in boxes(PipelineConfig(), {slot: "mine"})) == 1, slot


def test_a_changed_memory_of_conversations_is_drawn() -> None:
    (box,) = [one for one in boxes(PipelineConfig().override({"conversation.memory": "none"}), {}) if one.changes]
    assert (box.name, box.changes) == ("Understanding", ("conversation.memory = none",))


SCORES = Scores(
    [
        *(Score(f"q{n}", "retrieval.ndcg@10", n / 10) for n in range(10)),
        *(Score(f"q{n}", "cost.seconds", float(n)) for n in range(10)),
        Score("q1", "mine", None, "failed", HOSTILE),
        Score("q2", "other" + EVIL, None, "not_applicable", EVIL),
    ]
)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> ShownComparison:
    return compare(build_run(tmp_path_factory.mktemp("scores") / "run", 12, 6).path)


def test_scores_are_a_list_that_shows_a_row_a_metric_with_its_interval() -> None:
    shown = str(Scores(SCORES[:20]))
    assert isinstance(SCORES, list) and SCORES[0].value == 0.0
    row = next(line for line in shown.splitlines() if "retrieval.ndcg@10" in line)
    assert "0.450" in row and " to " in row and "10/10" in row
    assert "(lower is better)" in " ".join(shown.split())
    assert "0.450" in SCORES._repr_html_()  # type: ignore[attr-defined]
    assert "no scores" in str(Scores())


def test_what_was_not_scored_says_why_and_hostile_text_stays_text() -> None:
    page = SCORES._repr_html_()  # type: ignore[attr-defined]
    assert "<script>alert" not in page and "&lt;script&gt;" in page
    assert controls_in(page) == [] == controls_in(str(SCORES))
    assert max(map(len, str(SCORES).splitlines())) <= 100


def test_a_summary_is_numbers_to_compute_with_and_shows_itself_rounded() -> None:
    table = summary_table(["retrieval.ndcg@10", "mine"], SCORES)
    assert table.loc["retrieval.ndcg@10", "mean"] == pytest.approx(0.45)
    assert table.loc["mine", "mean"] is None or pd.isna(table.loc["mine", "mean"])
    assert "0.450" in str(table) and "95% interval" in table._repr_html_()  # type: ignore[operator]
    assert type(table.head(1)) is pd.DataFrame  # what is computed from it shows all of its numbers


def test_the_tables_of_a_comparison_stay_the_numbers_that_they_are(comparison: ShownComparison) -> None:
    assert list(comparison.summary.columns[:3]) == ["variant_id", "metric", "asked"]
    assert type(comparison.summary[comparison.summary["metric"] == "citations.precision"]) is pd.DataFrame
    assert comparison.summary["mean"].notna().all()


def test_the_tables_of_a_comparison_show_variants_beside_metrics_and_verdicts_in_full(
    comparison: ShownComparison,
) -> None:
    scores, differences = comparison.summary._repr_html_(), comparison.differences._repr_html_()
    assert scores.count("<tr>") == 1 + len(comparison.run.variants)
    assert all(str(prose(short_verdict(verdict))) in differences for verdict in comparison.differences["verdict"])
    assert repr(comparison.summary) == str(comparison)
    assert max(map(len, repr(comparison.differences).splitlines())) <= 100


def test_a_comparison_is_a_screen_in_a_terminal_and_a_line_where_it_is_inside_something(
    comparison: ShownComparison,
) -> None:
    assert repr([comparison]) == "[Comparison('reranker_and_hyde', 6 variants, 12 questions)]"
    assert max(map(len, str(comparison).splitlines())) <= 100
    assert "retrieval.ndcg@10" in str(comparison)


@pytest.mark.slow
@needs_browser
def test_a_click_or_a_key_sorts_a_table_by_numbers_and_back(tmp_path: Path) -> None:
    scores = [Score("q", f"m{n}", value) for n, value in enumerate((0.5, 0.25, 12.0, -1.0))]
    page_html = Scores(scores)._repr_html_()  # type: ignore[attr-defined]
    (tmp_path / "page.html").write_text(f"<!doctype html><meta charset='utf-8'><title>t</title><body>{page_html * 2}")
    with browser() as page:
        seen = watch(page)
        page.goto((tmp_path / "page.html").as_uri())
        head = page.locator("th", has_text="mean").first
        names = page.locator(".rl table").first.locator("tbody td:first-child")
        head.click()
        assert names.all_inner_texts() == ["m3", "m1", "m0", "m2"]
        head.press("Enter")
        assert names.all_inner_texts() == ["m2", "m0", "m1", "m3"]
        assert head.get_attribute("aria-sort") == "descending"
        assert page.locator(".rl table").nth(1).locator("tbody td").first.inner_text() == "m0"
        assert seen.errors == [] == seen.requests == seen.dialogs
