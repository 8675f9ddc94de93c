from __future__ import annotations

import pandas as pd
import pytest

from rag_lab.comparison.comparison import Comparison
from rag_lab.report.page.report_page import to_html
from rag_lab.statistics.summaries import summary


def test_every_metric_stands_by_class_and_by_tag(routed: Comparison, comparison: Comparison) -> None:
    assert set(comparison.by_class["metric"]) == {*comparison.quality_metrics, *comparison.cost_metrics}
    even = {f"q{index}" for index in range(0, 80, 2)}
    expected = summary(routed.scores[routed.scores["question_id"].isin(even)])
    pd.testing.assert_frame_equal(routed.by_tag.drop(columns="tag"), expected)
    assert list(routed.by_tag["tag"].unique()) == ["even"]


def test_groups_are_in_the_page_with_their_numbers(routed: Comparison) -> None:
    page = to_html(routed)
    assert "Every metric by class" in page and "Every metric by tag" in page
    row = routed.by_tag.iloc[0]
    cell = page.partition("Every metric by tag")[2]
    assert f"{row['mean']:.3f}" in cell and f"{row['scored']}/{row['asked']}" in cell


def test_a_question_without_tags_is_in_no_tag(comparison: Comparison) -> None:
    assert comparison.by_tag.empty and "Every metric by tag" not in to_html(comparison)
    assert comparison.by_class["asked"].sum() == pytest.approx(comparison.summary["asked"].sum())
