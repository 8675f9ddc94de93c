"""Who stays in a race."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.experiment.race import Looks, closest_call, race_standings, standings
from rag_lab.records import Score
from rag_lab.runs.variant_files import to_frame
from rag_lab.statistics.summaries import Scale

METRIC = "retrieval.ndcg@5"


def frame(values):
    """Scores by variant; NaN is a failure."""
    return to_frame(
        {
            name: [
                Score(f"q{i}", METRIC, None, "failed", "no reply")
                if math.isnan(x)
                else Score(f"q{i}", METRIC, float(x))
                for i, x in enumerate(row)
            ]
            for name, row in values.items()
        }
    )


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


def looks(n, units=None, largest=1, error=0.05):
    ids = [f"q{i}" for i in range(n)]
    return Looks(units or {name: name for name in ids}, largest, (n,), error)


def test_a_race_drops_who_is_shown_to_be_worse_and_says_than_whom_and_by_how_much():
    values = {"base": [0.2] * 40, "best": [0.9] * 40, "near": [0.85, 0.9] * 20, "bad": [0.1, 0.3] * 20}
    found = race_standings(frame(values), METRIC, Scale(), labels(*values), "base", looks(40))
    assert kept(found) == ["best", "near"] and [one.variant_id for one in found] == ["best", "near", "base", "bad"]
    assert found[3].behind == "best" and 0.3 < found[3].least < 0.7
    lower = Scale(higher_is_better=False)
    assert kept(race_standings(frame(values), METRIC, lower, labels(*values), "base", looks(40))) == ["bad"]


def test_few_questions_failures_and_ranges_that_are_not_known_drop_nobody_without_cause():
    few = {"base": [0] * 6, "a": [1] * 6, "b": [0.9] * 6}
    assert kept(race_standings(frame(few), METRIC, Scale(), labels(*few), "base", looks(6))) == ["a", "b"]
    failing = {"base": [0.5] * 40, "a": [1.0] * 40, "fails": [np.nan] * 39 + [1.0]}
    found = race_standings(frame(failing), METRIC, Scale(), labels(*failing), "base", looks(40))
    assert kept(found) == ["a"] and found[2].behind == "a"  # a failure counts as the worst value
    beyond = {"base": [0] * 40, "a": [9] * 40, "b": [0] * 40}
    assert kept(race_standings(frame(beyond), METRIC, Scale(), labels(*beyond), "base", looks(40))) == ["a", "b"]
    none = race_standings(
        frame({"base": [0] * 9, "a": [1] * 9}), METRIC, Scale(), labels("base", "a", "x"), "base", looks(9)
    )
    assert none[-1].variant_id == "x" and not none[-1].stays and none[-1].behind == ""


def test_clusters_count_as_one_and_the_bound_is_that_of_questions():
    values = {"base": [0.0] * 200, "a": [1.0] * 200, "b": [0.2] * 200}
    clusters = {f"q{i}": f"c{i // 4}" for i in range(200)}
    alone = race_standings(frame(values), METRIC, Scale(), labels(*values), "base", looks(200))
    ours = Looks(clusters, 4, (50,), 0.05)
    together = race_standings(frame(values), METRIC, Scale(), labels(*values), "base", ours)
    assert kept(alone) == kept(together) == ["a"]
    assert 0 < together[1].least < alone[1].least < 0.8
