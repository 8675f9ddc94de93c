from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.errors import ConfigError
from rag_lab.statistics.scales import SHARE, UNKNOWN, Scale
from rag_lab.statistics.variant_order import ranking

values = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0])
tables = st.integers(2, 8).flatmap(lambda n: st.lists(st.lists(values, min_size=n, max_size=n), min_size=2, max_size=4))


def scores(table: list[list[float | None]]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                **{"variant_id": f"v{v}", "question_id": f"q{q}", "metric": "m", "value": value},
                **{"status": "failed" if value is None else "scored", "reason": ""},
            }
            for v, row in enumerate(table)
            for q, value in enumerate(row)
        ]
    )


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
    assert (row["mean"], row["ranked_by"], row["scored"], row["failed"]) == (
        pytest.approx(0.9),
        pytest.approx(0.6),
        2,
        1,
    )


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
