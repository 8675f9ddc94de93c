import math
from typing import Any

import pandas as pd
import pytest
from factories import comparisons, score_table
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.errors import ConfigError
from rag_lab.statistics.summaries import (
    SHARE,
    SUMMARY_COLUMNS,
    UNKNOWN,
    Scale,
    per_question,
    ranking,
    summary,
    unit_places,
    with_failures_at,
)

FAILED, NOT_APPLICABLE = "failed", "not_applicable"
Cell = float | str  # a value, or a status
values = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0])
tables = st.integers(2, 8).flatmap(lambda n: st.lists(st.lists(values, min_size=n, max_size=n), min_size=2, max_size=4))


def table(*rows: tuple[str, str, str, Cell] | tuple[str, str, str, Cell, int]) -> pd.DataFrame:
    """Return scores from (variant, question, metric, value or status, repeat)."""
    return pd.DataFrame([_row(*row) for row in rows])


def _row(variant: str, question: str, metric: str, cell: Cell, repeat: int = 0) -> dict[str, Any]:
    outcome = (None, cell, f"why {cell}") if isinstance(cell, str) else (cell, "scored", "")
    names = ("variant_id", "question_id", "metric", "repeat", "value", "status", "reason")
    return dict(zip(names, (variant, question, metric, repeat, *outcome), strict=True))


def cells(variant: str, metric: str, *values: Cell) -> list[tuple[str, str, str, Cell]]:
    return [(variant, f"q{number}", metric, value) for number, value in enumerate(values)]


def test_missing_is_not_zero() -> None:
    row = summary(table(*cells("a", "m", 1.0, 0.5, FAILED, NOT_APPLICABLE))).iloc[0]
    assert list(row[["asked", "scored", "failed", "not_applicable"]]) == [4, 2, 1, 1]
    assert row["mean"] == 0.75
    assert row["worst"] == pytest.approx(1.5 / 3)
    assert row["best"] == pytest.approx(2.5 / 3)


def test_repeats_are_averaged_within_their_question() -> None:
    rows = [("a", "q0", "m", 1.0, repeat) for repeat in range(9)] + [("a", "q1", "m", 0.0, 0)]
    row = summary(table(*rows)).iloc[0]
    assert (row["asked"], row["mean"]) == (2, 0.5)


def test_a_repeat_that_failed_shows_in_the_bounds() -> None:
    row = summary(table(("a", "q0", "m", 1.0, 0), ("a", "q0", "m", FAILED, 1), ("a", "q1", "m", 1.0, 0))).iloc[0]
    assert (row["scored"], row["failed"], row["mean"]) == (2, 0, 1.0)
    assert (row["worst"], row["best"]) == (0.75, 1.0)


def test_all_failed_has_no_mean_and_says_why_and_a_null_reason_is_none() -> None:
    row = summary(table(*cells("a", "m", FAILED, FAILED))).iloc[0]
    assert row["mean"] is None and row["low"] is None and row["high"] is None
    assert (row["worst"], row["best"], row["reason"]) == (0.0, 1.0, "why failed")
    for nothing in (None, math.nan):
        row = summary(table(*cells("a", "m", FAILED)).assign(reason=nothing)).iloc[0]
        assert (row["failed"], row["reason"]) == (1, "no value")


def test_scored_without_a_number_counts_as_failed_and_what_is_no_share_has_no_bounds() -> None:
    row = summary(table(*cells("a", "m", 1.0, math.nan, math.inf))).iloc[0]
    assert (row["scored"], row["failed"], row["mean"]) == (1, 2, 1.0)
    row = summary(table(*cells("a", "seconds", 12.0, FAILED))).iloc[0]
    assert row["worst"] is None and row["best"] is None


def test_the_bounds_are_those_of_the_metric_whatever_was_seen() -> None:
    scores = table(
        *cells("a", "cosine", 0.5, FAILED), *cells("a", "seconds", 0.5, FAILED), *cells("a", "own", 2.0, 0.5)
    )
    scales = {"cosine": Scale(low=-1.0), "seconds": Scale(high=None, higher_is_better=False)}
    found = summary(scores, scales=scales).set_index("metric")
    assert list(found.loc["cosine", ["worst", "best"]]) == [-0.25, 0.75]
    assert list(found.loc["seconds", ["worst", "best"]]) == [None, 0.25]
    assert list(found.loc["own", ["worst", "best"]]) == [None, None]


def test_a_bound_that_a_score_lies_beyond_is_none() -> None:
    row = summary(table(*cells("a", "m", -0.5, FAILED)), scales={"m": SHARE}).iloc[0]
    assert (row["worst"], row["best"]) == (None, 0.25)
    rounded = summary(table(*cells("a", "m", 1.0 + 1e-9, FAILED)), scales={"m": SHARE}).iloc[0]
    assert (rounded["worst"], rounded["best"]) == pytest.approx((0.5, 1.0))


def test_an_interval_stays_within_the_range_of_the_metric() -> None:
    """Student's interval of two values would reach from -5.9 to 6.9."""
    row = summary(table(*cells("a", "m", 0.0, 1.0)), scales={"m": SHARE}).iloc[0]
    assert (row["mean"], row["low"], row["high"]) == (0.5, 0.0, 1.0)
    row = summary(table(*cells("a", "m", 0.0, 1.0)), scales={"m": Scale(0.0, None)}).iloc[0]
    assert row["low"] == 0.0 and row["high"] == pytest.approx(6.853, abs=1e-3)


def test_order_is_that_of_the_table() -> None:
    scores = table(("b", "q", "z", 1.0), ("a", "q", "z", 1.0), ("b", "q", "y", 1.0))
    assert list(summary(scores)["variant_id"] + summary(scores)["metric"]) == ["bz", "az", "by"]
    assert tuple(summary(scores).columns) == SUMMARY_COLUMNS


def test_missing_columns() -> None:
    with pytest.raises(ConfigError, match="lacks the columns status, reason"):
        summary(table(*cells("a", "m", 1.0)).drop(columns=["status", "reason"]))


def test_read_from_parquet(tmp_path: Any) -> None:
    scores = table(*cells("base", "m", 1.0, FAILED, 0.2), *cells("new", "m", 1.0, 0.5, 0.1))
    scores.to_parquet(tmp_path / "scores.parquet")
    again = pd.read_parquet(tmp_path / "scores.parquet")
    assert summary(again).equals(summary(scores))
    assert comparisons(again, "base").equals(comparisons(scores, "base"))


any_cell = st.one_of(st.sampled_from([FAILED, NOT_APPLICABLE, 0.0, 1.0, math.nan]), st.floats(0, 1))
any_tables = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["q0", "q1", "q2"]), st.sampled_from("mn"), any_cell, st.just(0)),
    min_size=1,
    unique_by=lambda row: row[:3],
)


def compared(data: pd.DataFrame) -> pd.DataFrame:
    return comparisons(data.sort_values("metric", kind="stable"), data["variant_id"].min())  # the first is primary


@settings(max_examples=20, deadline=None)
@given(any_tables, st.randoms(use_true_random=False))
def test_no_nan_and_no_dependence_on_order(rows: list[Any], random: Any) -> None:
    scores = table(*rows)
    shuffled = table(*random.sample(rows, len(rows)))
    for make in (summary, compared):
        found, other = make(scores), make(shuffled)
        for value in found.to_numpy().ravel():
            assert not (isinstance(value, float) and math.isnan(value))
        keys = ["variant_id", "metric"]
        ours = found.sort_values(keys, ignore_index=True)
        pd.testing.assert_frame_equal(ours, other.sort_values(keys, ignore_index=True))


def scores(table: list[list[float | None]]) -> pd.DataFrame:
    return score_table({f"v{number}": row for number, row in enumerate(table)})


def fail_hardest(row: list[float], how_many: int) -> list[float | None]:
    hardest = sorted(range(len(row)), key=lambda index: row[index])[:how_many]
    return [None if index in hardest else value for index, value in enumerate(row)]


def rank_of(table: pd.DataFrame, variant: str) -> int:
    return int(table.set_index("variant_id").loc[variant, "rank"])


@pytest.mark.parametrize("scale", [SHARE, Scale(low=-1.0), UNKNOWN])
@settings(max_examples=20, deadline=None)
@given(table=tables, how_many=st.integers(1, 8))
def test_failing_on_the_hardest_questions_never_raises_a_variant(
    scale: Scale, table: list[list[float]], how_many: int
) -> None:
    before = ranking(scores(table), "m", scale)
    after = ranking(scores([fail_hardest(table[0], how_many), *table[1:]]), "m", scale)
    assert rank_of(after, "v0") >= rank_of(before, "v0")
    gone = scores([fail_hardest(table[0], how_many), *table[1:]])
    without_rows = ranking(gone[gone["status"] == "scored"], "m", scale)
    if how_many < len(table[0]):
        assert rank_of(without_rows, "v0") >= rank_of(before, "v0")


def test_a_mean_over_scored_questions_would_have_raised_it() -> None:
    table = scores([fail_hardest([0.0, 0.9, 0.9], 1), [0.5, 0.8, 0.8]])
    found = ranking(table, "m")
    assert list(found["variant_id"]) == ["v1", "v0"]
    row = found.iloc[1]
    assert (row["mean"], row["ranked_by"]) == pytest.approx((0.9, 0.6))
    assert (row["scored"], row["failed"]) == (2, 1)


def test_equals_share_a_rank_and_keep_their_order() -> None:
    found = ranking(scores([[0.5, 0.5], [1.0, 0.0], [0.0, 0.0]]), "m")
    assert list(found["rank"]) == [1, 1, 3]
    assert list(found["variant_id"]) == ["v0", "v1", "v2"]


def test_a_variant_without_a_row_is_last() -> None:
    table = scores([[1.0, 1.0], [0.0, 0.1]])
    other = table[table["variant_id"] == "v0"].assign(metric="other")
    found = ranking(pd.concat([other, table[table["variant_id"] == "v1"]]), "m")
    assert list(found["variant_id"]) == ["v1", "v0"]
    assert (found.iloc[1]["mean"], found.iloc[1]["failed"]) == (None, 2)


@settings(max_examples=20, deadline=None)
@given(table=tables, how_many=st.integers(0, 8))
def test_where_lower_is_better_the_order_is_that_of_the_mirrored_scores(
    table: list[list[float]], how_many: int
) -> None:
    failing: list[list[float | None]] = [fail_hardest(table[0], how_many), *table[1:]]
    turned = [[None if value is None else 1 - value for value in row] for row in failing]
    ours, mirrored = ranking(scores(turned), "m", Scale(higher_is_better=False)), ranking(scores(failing), "m")
    assert list(ours["rank"]) == list(mirrored["rank"])
    assert list(1 - ours["ranked_by"]) == pytest.approx(list(mirrored["ranked_by"]))


def test_a_score_below_the_worst_value_is_refused() -> None:
    with pytest.raises(ConfigError, match="beyond its range; give a scale"):
        ranking(scores([[-0.5, 1.0]]), "m")


def test_failures_count_at_an_end_or_are_left_out() -> None:
    rows = [("v", "q1", 0.4, "scored"), ("v", "q1", None, "failed"), ("v", "q2", None, "failed")]
    rows += [("v", "q3", None, "not_applicable")]
    columns = ["variant_id", "question_id", "value", "status"]
    questions = per_question(pd.DataFrame(rows, columns=columns).assign(metric="m", reason=""))
    assert with_failures_at(questions, 1.0).tolist()[:2] == [0.7, 1.0]
    assert with_failures_at(questions, None).tolist()[0] == 0.4
    assert with_failures_at(questions, None).isna().tolist() == [False, True, True]
    assert with_failures_at(questions, 0.0).isna().tolist() == [False, False, True]


@given(st.permutations(["q3", "q1", "q10", "q2"]))
def test_units_are_numbered_by_the_ids_whatever_their_order(ids: list[str]) -> None:
    assert unit_places([*ids, "q1"], {"q3": "doc", "q1": "doc"}) == {"q1": 0, "q10": 1, "q2": 2, "q3": 0}
    assert unit_places(ids, None) == {"q1": 0, "q10": 1, "q2": 2, "q3": 3}
