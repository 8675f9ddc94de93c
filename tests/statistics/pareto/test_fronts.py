"""How often a variant is on the front: what can be computed by hand, and fronts that are planted."""

import math

import numpy as np
import pytest

from rag_lab.statistics.pareto.dominance import Noticed
from rag_lab.statistics.pareto.fronts import N_RESAMPLES, fronts
from rag_lab.statistics.pareto.quantities import Means, medians

SLACK = 4 * math.sqrt(0.25 / N_RESAMPLES)


def means(columns):
    sums = np.array(columns, dtype=float).T[:, :, None]
    return Means(sums, np.ones_like(sums))


def seconds(columns):
    n = len(columns[0])
    return medians([np.array(column, dtype=float) for column in columns], [np.arange(n)] * len(columns)), Noticed(0.05)


def test_one_question_makes_a_variant_better_where_it_is_drawn():
    """A is beaten unless the question that B alone answers is not drawn: e^-1 of the resamples."""
    base, better = np.full(50, 0.5), np.full(50, 0.5)
    better[7] = 1.0
    found = fronts(means([base, better]), [seconds([np.ones(50)] * 2)], [[0]])
    assert found.on.tolist() == [[False, True]]
    assert found.shares[0].tolist() == [pytest.approx(math.exp(-1), abs=SLACK), 1.0]


def test_a_planted_front_is_certain():
    random = np.random.default_rng(0)
    base = random.uniform(0.2, 0.4, 100)
    quality = [base, base + 0.3, base + 0.1, base - 0.1]  # cheap; best; dearer than the best and worse; dearest, worst
    took = [np.full(100, s) + random.uniform(0, 0.01, 100) for s in (0.1, 1.0, 2.0, 3.0)]
    found = fronts(means(quality), [seconds(took)], [[0]])
    assert found.on.tolist() == [[True, True, False, False]] and found.shares.tolist() == [[1.0, 1.0, 0.0, 0.0]]


def test_a_front_of_two_coins_is_not_certain():
    """Two variants of one price whose differences cancel: each is on the front half of the time."""
    swing = np.tile([0.2, -0.2], 50)
    found = fronts(means([np.full(100, 0.5), 0.5 + swing]), [seconds([np.ones(100)] * 2)], [[0]])
    assert found.on.tolist() == [[True, True]]
    assert found.shares[0] == pytest.approx([0.52, 0.52], abs=2 * SLACK)  # a tie, in which both are, is not rare


def test_a_cost_that_hangs_on_few_questions_is_resampled_too():
    """Half of the questions take a second longer, so the median jumps; the quality is the same."""
    slow = np.tile([0.1, 1.1], 51)[:101]
    found = fronts(means([np.full(101, 0.5)] * 2), [seconds([slow, np.full(101, 0.5)])], [[0]])
    assert found.on.tolist() == [[True, False]]
    assert 0.3 < found.shares[0, 0] < 0.7 and found.shares[0, 1] == pytest.approx(1 - found.shares[0, 0], abs=0.02)


def test_against_two_costs_one_must_be_beaten_in_both():
    quality = means([np.full(20, 0.5)] * 2)
    costs = [
        seconds([np.full(20, 1.0), np.full(20, 2.0)]),
        (means([np.full(20, 900.0), np.full(20, 100.0)]), Noticed(10)),
    ]
    found = fronts(quality, costs, [[0], [1], [0, 1]])
    assert found.on.tolist() == [[True, False], [False, True], [True, True]] == found.shares.astype(bool).tolist()


def test_the_same_seed_says_the_same_and_all_equal_are_all_on_it():
    random = np.random.default_rng(1)
    quality = means(random.random((4, 60)))
    costs = [seconds(random.random((4, 60)))]
    assert (fronts(quality, costs, [[0]]).shares == fronts(quality, costs, [[0]]).shares).all()
    equal = fronts(means([np.full(30, 0.5)] * 3), [seconds([np.ones(30)] * 3)], [[0]])
    assert equal.on.all() and (equal.shares == 1).all()
