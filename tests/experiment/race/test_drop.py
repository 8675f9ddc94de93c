"""Who stays in a race."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.experiment.race.drop import closest_call, standings
from rag_lab.records import Score
from rag_lab.runs.score_file import to_frame
from rag_lab.statistics.scales import Scale

METRIC = "retrieval.ndcg@5"


def frame(values):
    """Scores by variant; NaN is a failure."""
    parts = [
        to_frame(
            name,
            [
                Score(f"q{i}", METRIC, None, "failed", "no reply")
                if math.isnan(x)
                else Score(f"q{i}", METRIC, float(x))
                for i, x in enumerate(row)
            ],
        )
        for name, row in values.items()
    ]
    return pd.concat(parts, ignore_index=True)


def labels(*names):
    return {name: f"the {name}" for name in names}


def kept(found, baseline="base"):
    return [one.variant_id for one in found if one.stays and one.variant_id != baseline]


def test_the_best_stay_and_the_baseline_with_them_however_it_stands():
    values = {"base": [0, 0, 0.1], "a": [1, 0, 0], "b": [1, 1, 0], "c": [0.5, 0.5, 0.5]}
    found = standings(frame(values), METRIC, Scale(), labels("base", "a", "b", "c"), "base", 2)
    assert [(one.variant_id, one.rank) for one in found] == [("b", 1), ("c", 2), ("a", 3), ("base", 4)]
    assert kept(found) == ["b", "c"] and found[3].stays and found[0].label == "the b"
    assert found[0].mean == pytest.approx(2 / 3)
    lower = standings(frame(values), METRIC, Scale(higher_is_better=False), labels("base", "a", "b", "c"), "base", 1)
    assert kept(lower) == ["a"]


def test_a_failure_counts_as_the_worst_value_so_that_nobody_wins_by_failing():
    values = {"base": [0, 0], "fails": [1, np.nan], "solid": [0.8, 0.3]}
    found = standings(frame(values), METRIC, Scale(), labels("base", "fails", "solid"), "base", 1)
    assert kept(found) == ["solid"]
    assert found[1].mean == 0.5 and (found[1].scored, found[1].asked) == (1, 2)


def test_between_equals_the_earlier_in_the_plan_stays_and_that_is_told():
    values = {"base": [0, 0], "late": [1, 0], "early": [0, 1], "worse": [0, 0]}
    found = standings(frame(values), METRIC, Scale(), labels("base", "early", "late", "worse"), "base", 1)
    assert kept(found) == ["early"]
    assert [one.variant_id for one in found if one.is_tied] == ["late"]


def test_a_variant_without_scores_is_dropped_even_where_places_are_free():
    values = {"base": [0, 0], "a": [0, 0]}
    found = standings(frame(values), METRIC, Scale(), labels("base", "a", "broken"), "base", 2)
    assert kept(found) == ["a"] and found[-1].variant_id == "broken" and found[-1].rank is None
    assert kept(standings(frame({"base": [0]}), METRIC, Scale(), labels("base", "x"), "base", 1)) == []


@settings(max_examples=20)
@given(
    st.lists(st.lists(st.sampled_from([0, 0.5, 1]), min_size=4, max_size=4), min_size=2, max_size=6), st.integers(1, 4)
)
def test_nobody_is_dropped_before_one_with_a_worse_mean_stays(rows, n_kept):
    values = {f"v{i}": row for i, row in enumerate(rows)}
    found = standings(frame(values), METRIC, Scale(), labels(*values), "v0", n_kept)
    means = {name: math.fsum(row) for name, row in values.items()}
    stay, dropped = kept(found, "v0"), [one.variant_id for one in found if not one.stays]
    assert len(stay) == min(n_kept, len(rows) - 1)
    assert not dropped or min(means[name] for name in stay) >= max(means[name] for name in dropped)
    shuffled = frame(values).sample(frac=1, random_state=1)
    assert standings(shuffled, METRIC, Scale(), labels(*values), "v0", n_kept) == found


def test_the_closest_call_is_a_paired_difference_with_its_standard_error():
    values = {"base": [0, 0, 0], "a": [1, 1, 0.4], "b": [1, 0.5, np.nan], "c": [0, 0, 0]}
    found = standings(frame(values), METRIC, Scale(), labels("base", "a", "b", "c"), "base", 1)
    call = closest_call(frame(values), METRIC, Scale(), found, "base")
    gaps = np.array([0, 0.5, 0.4])
    assert (call.kept, call.dropped) == ("a", "b")
    assert call.difference == pytest.approx(gaps.mean())
    assert call.error == pytest.approx(gaps.std(ddof=1) / np.sqrt(3))
    everyone = standings(frame(values), METRIC, Scale(), labels("base", "a", "b", "c"), "base", 3)
    assert closest_call(frame(values), METRIC, Scale(), everyone, "base") is None
