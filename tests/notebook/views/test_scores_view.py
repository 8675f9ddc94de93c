from pathlib import Path

import pandas as pd
import pytest
from browser import browser, needs_browser, watch
from hostile_text import EVIL, controls_in
from run_folder_fixture import HOSTILE, build_run

from rag_lab._kit.wording import short_verdict
from rag_lab.evaluation.evaluate import Scores
from rag_lab.notebook.views.pipeline_view import summary_table
from rag_lab.records import Score
from rag_lab.report.page.templates import prose
from rag_lab.report.shown_comparison import ShownComparison, compare

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
