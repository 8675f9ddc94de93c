"""The front is what a search by hand finds, and costs that are too close to tell apart are equal."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.statistics.pareto import N_RESAMPLES, Means, Tolerance, differ, fronts, medians, not_dominated, snap

few = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
points = st.lists(st.tuples(few, few, few), min_size=1, max_size=8)
amounts = st.lists(st.floats(0, 3000), min_size=1, max_size=8)
weights = st.lists(st.integers(0, 4), min_size=6, max_size=6)
values = st.lists(st.integers(0, 9), min_size=6, max_size=12)
SLACK = 4 * math.sqrt(0.25 / N_RESAMPLES)


def beats(one, other):
    """By the definition: as good at no more cost in anything, and better or cheaper."""
    as_good = one[0] >= other[0] and all(a <= b for a, b in zip(one[1:], other[1:], strict=True))
    return as_good and one != other


@given(points)
def test_the_front_is_what_nobody_beats(found):
    quality, *costs = np.array(found, dtype=float).T[:, :, None]
    expected = [not any(beats(one, other) for one in found) for other in found]
    assert not_dominated(quality, costs)[:, 0].tolist() == expected


@given(points)
def test_each_sample_is_a_front_of_its_own(found):
    quality, *costs = np.array(found, dtype=float).T[:, :, None]
    turned = (np.hstack([quality, -quality]), [np.hstack([cost, cost[::-1]]) for cost in costs])
    both = not_dominated(*turned)
    assert both[:, 0].tolist() == not_dominated(quality, costs)[:, 0].tolist()
    assert both[:, 1].tolist() == not_dominated(-quality, [cost[::-1] for cost in costs])[:, 0].tolist()


def test_rounding_makes_nobody_better():
    quality = np.array([[0.1 + 0.2], [0.3]])
    assert not_dominated(quality, [np.array([[1.0], [2.0]])])[:, 0].tolist() == [True, False]
    assert not_dominated(quality, [np.array([[2.0], [1.0]])])[:, 0].tolist() == [False, True]


@given(amounts, st.sampled_from([Tolerance(0.05), Tolerance(10, 0.02), Tolerance(0, 0.02), Tolerance()]))
def test_groups_begin_where_a_cost_is_noticed(costs, tolerance):
    seen = snap(np.array(costs)[:, None], tolerance)[:, 0].tolist()
    for cost, group in zip(costs, seen, strict=True):
        assert group <= cost and (group == cost or cost - group < max(tolerance.absolute, tolerance.relative * group))
    groups = sorted(set(seen))
    for cheap, dear in zip(groups, groups[1:], strict=False):
        assert dear - cheap >= max(tolerance.absolute, tolerance.relative * cheap)
    assert differ(costs, tolerance) == (len(groups) > 1)


@given(amounts)
def test_without_a_threshold_costs_are_what_they_are(costs):
    assert snap(np.array(costs)[:, None], Tolerance())[:, 0].tolist() == costs


def test_about_as_cheap_leads_into_no_circle():
    """Each is noticeably cheaper in one cost than the one before it, and about as cheap in the others."""
    costs = [np.array([[1.00], [1.04], [0.98]]), np.array([[0.98], [1.00], [1.04]]), np.array([[1.04], [0.98], [1.00]])]
    seen = [snap(cost, Tolerance(0.05)) for cost in costs]
    assert not_dominated(np.full((3, 1), 0.5), seen).any()


@pytest.mark.parametrize(("cost", "expected"), [(1.04, [False, True]), (1.06, [True, True])])
def test_a_better_variant_beats_one_that_is_only_unnoticeably_cheaper(cost, expected):
    seen = snap(np.array([[1.0], [cost]]), Tolerance(0.05))
    assert not_dominated(np.array([[0.5], [0.6]]), [seen])[:, 0].tolist() == expected


@given(values, weights)
def test_a_median_is_that_of_the_units_drawn(found, drawn):
    """Values of 6 units, of which some have two."""
    column, places = np.array(found, dtype=float), np.arange(len(found)) % 6
    every = np.repeat(column, np.array(drawn)[places])
    expected = np.median(every) if len(every) else np.median(column)
    assert medians([column], [places]).at(np.array(drawn, dtype=float)[:, None])[0, 0] == expected


@given(values, weights)
def test_a_mean_is_that_of_the_units_drawn_and_the_parts_add_up(found, drawn):
    column = np.array(found, dtype=float)
    half = len(column) // 2
    parts = [column[:half], column[half:]]
    sums, counts = np.zeros((6, 1, 2)), np.zeros((6, 1, 2))
    expected = 0.0
    for part, one in enumerate(parts):
        places = np.arange(len(one)) % 6
        np.add.at(sums[:, 0, part], places, one)
        np.add.at(counts[:, 0, part], places, 1)
        every = np.repeat(one, np.array(drawn)[places])
        expected += (every if len(every) else one).mean()
    assert Means(sums, counts).at(np.array(drawn, dtype=float)[:, None])[0, 0] == pytest.approx(expected)


def test_what_was_never_measured_is_nothing():
    nothing = np.zeros((3, 2, 0))
    assert Means(nothing, nothing).at(np.ones((3, 4))).tolist() == [[0.0] * 4] * 2
    assert medians([np.zeros(0)], [np.zeros(0, dtype=np.intp)]).at(np.ones((3, 2))).tolist() == [[0.0, 0.0]]


def test_the_order_of_values_does_not_matter():
    random = np.random.default_rng(3)
    column, places, turn = random.random(40), random.integers(0, 9, 40), random.permutation(40)
    drawn = random.poisson(1.0, (9, 50)).astype(float)
    one, other = medians([column], [places]), medians([column[turn]], [places[turn]])
    assert (one.at(drawn) == other.at(drawn)).all()


def means(columns):
    sums = np.array(columns, dtype=float).T[:, :, None]
    return Means(sums, np.ones_like(sums))


def seconds(columns):
    n = len(columns[0])
    values = [np.array(column, dtype=float) for column in columns]
    return medians(values, [np.arange(n)] * len(columns)), Tolerance(0.05)


def test_one_question_makes_a_variant_better_where_it_is_drawn():
    """A is beaten unless the question that B alone answers is not drawn: e^-1 of the resamples."""
    base, better = np.full(50, 0.5), np.full(50, 0.5)
    better[7] = 1.0
    on, shares = fronts(means([base, better]), [seconds([np.ones(50)] * 2)], [[0]])
    assert on.tolist() == [[False, True]]
    assert shares[0].tolist() == [pytest.approx(math.exp(-1), abs=SLACK), 1.0]


def test_a_planted_front_is_certain():
    random = np.random.default_rng(0)
    base = random.uniform(0.2, 0.4, 100)
    quality = [base, base + 0.3, base + 0.1, base - 0.1]  # cheap; best; dearer than the best and worse; dearest, worst
    took = [np.full(100, s) + random.uniform(0, 0.01, 100) for s in (0.1, 1.0, 2.0, 3.0)]
    on, shares = fronts(means(quality), [seconds(took)], [[0]])
    assert on.tolist() == [[True, True, False, False]] and shares.tolist() == [[1.0, 1.0, 0.0, 0.0]]


def test_a_front_of_two_coins_is_not_certain():
    """Two variants of one price whose differences cancel: each is on the front half of the time."""
    swing = np.tile([0.2, -0.2], 50)
    on, shares = fronts(means([np.full(100, 0.5), 0.5 + swing]), [seconds([np.ones(100)] * 2)], [[0]])
    assert on.tolist() == [[True, True]]
    assert shares[0] == pytest.approx([0.52, 0.52], abs=2 * SLACK)  # a tie, in which both are, is not rare


def test_a_cost_that_hangs_on_few_questions_is_resampled_too():
    """Half of the questions take a second longer, so the median jumps; the quality is the same."""
    slow = np.tile([0.1, 1.1], 51)[:101]
    on, shares = fronts(means([np.full(101, 0.5)] * 2), [seconds([slow, np.full(101, 0.5)])], [[0]])
    assert on.tolist() == [[True, False]]
    assert 0.3 < shares[0, 0] < 0.7 and shares[0, 1] == pytest.approx(1 - shares[0, 0], abs=0.02)


def test_against_two_costs_one_must_be_beaten_in_both():
    quality = means([np.full(20, 0.5)] * 2)
    costs = [
        seconds([np.full(20, 1.0), np.full(20, 2.0)]),
        (means([np.full(20, 900.0), np.full(20, 100.0)]), Tolerance(10)),
    ]
    on, shares = fronts(quality, costs, [[0], [1], [0, 1]])
    assert on.tolist() == [[True, False], [False, True], [True, True]] == shares.astype(bool).tolist()


def test_the_same_seed_says_the_same_and_all_equal_are_all_on_it():
    random = np.random.default_rng(1)
    quality = means(random.random((4, 60)))
    costs = [seconds(random.random((4, 60)))]
    assert (fronts(quality, costs, [[0]])[1] == fronts(quality, costs, [[0]])[1]).all()
    equal = fronts(means([np.full(30, 0.5)] * 3), [seconds([np.ones(30)] * 3)], [[0]])
    assert equal[0].all() and (equal[1] == 1).all()
