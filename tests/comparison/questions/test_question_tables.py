"""What a variant won and lost, question by question."""

from dataclasses import replace

import pandas as pd
import pytest

from rag_lab.comparison.comparison import Comparison
from rag_lab.errors import ConfigError
from rag_lab.report.page.report_page import to_html
from rag_lab.statistics.scales import Scale
from rag_lab.statistics.summaries import summary

MAIN = "retrieval.ndcg@10"


def other(comparison: Comparison) -> str:
    """Return the first variant beside the baseline that has a difference."""
    return next(p.variant_id for p in comparison.variants if comparison.difference(p.variant_id, MAIN))


def test_the_gains_are_those_of_the_paired_difference_most_lost_first(wide: Comparison) -> None:
    variant = other(wide)
    table, told = wide.paired(variant), wide.difference(variant, MAIN) or {}
    assert list(table["gain"]) == sorted(table["gain"])
    assert len(table) == told["n"]
    assert table["gain"].mean() == pytest.approx(told["difference"])
    assert (table["gain"] > 0).sum() == told["wins"] and (table["gain"] < 0).sum() == told["losses"]
    assert list(table["gain"]) == pytest.approx(list(table[variant] - table[wide.run.baseline]))
    assert [wide.asked[name].text for name in table["question_id"]] == list(table["question"])


def test_less_is_a_gain_where_lower_is_better(wide: Comparison) -> None:
    variant = other(wide)
    turned = replace(wide, scales={**wide.scales, MAIN: Scale(higher_is_better=False)})
    assert sorted(-turned.paired(variant)["gain"]) == pytest.approx(list(wide.paired(variant)["gain"]))


def test_a_question_that_one_side_did_not_score_is_no_pair(wide: Comparison) -> None:
    variant = other(wide)
    gone = wide.paired(variant)["question_id"].iloc[0]
    rows = (wide.scores["question_id"] == gone) & (wide.scores["variant_id"] == variant)
    scores = wide.scores.assign(
        status=wide.scores["status"].mask(rows, "failed"), value=wide.scores["value"].mask(rows, None)
    )
    left = replace(wide, scores=scores).paired(variant)
    assert gone not in set(left["question_id"]) and len(left) == len(wide.paired(variant)) - 1


def test_what_cannot_be_paired_is_one_sentence(wide: Comparison) -> None:
    with pytest.raises(ConfigError, match="variant beside the baseline 'baselin'"):
        wide.paired("baselin")
    with pytest.raises(ConfigError, match=r"did you mean 'retrieval\.ndcg@10'"):
        wide.paired(other(wide), "retrieval.ndgc@10")


def test_a_trace_is_found_by_variant_and_question(wide: Comparison) -> None:
    variant = other(wide)
    assert wide.trace(variant, "q002") in wide.traces[variant]
    assert wide.trace(variant, "q002").question.question_id == "q002"
    with pytest.raises(ConfigError, match="did you mean 'q002'"):
        wide.trace(variant, "q0002")
    with pytest.raises(ConfigError, match="variant with traces"):
        wide.trace("nobody", "q002")


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
