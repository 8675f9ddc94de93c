"""The front is what a search by hand finds, and costs that are too close to tell apart are equal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.statistics.pareto.dominance import Noticed, as_noticed, differ, not_dominated

few = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
points = st.lists(st.tuples(few, few, few), min_size=1, max_size=8)
amounts = st.lists(st.floats(0, 3000), min_size=1, max_size=8)


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


@given(amounts, st.sampled_from([Noticed(0.05), Noticed(10, 0.02), Noticed(0, 0.02), Noticed()]))
def test_groups_begin_where_a_cost_is_noticed(costs, noticed):
    seen = as_noticed(np.array(costs)[:, None], noticed)[:, 0].tolist()
    for cost, group in zip(costs, seen, strict=True):
        assert group <= cost and (group == cost or cost - group < max(noticed.least, noticed.share * group))
    groups = sorted(set(seen))
    for cheap, dear in zip(groups, groups[1:], strict=False):
        assert dear - cheap >= max(noticed.least, noticed.share * cheap)
    assert differ(costs, noticed) == (len(groups) > 1)


@given(amounts)
def test_without_a_threshold_costs_are_what_they_are(costs):
    assert as_noticed(np.array(costs)[:, None], Noticed())[:, 0].tolist() == costs


def test_about_as_cheap_leads_into_no_circle():
    """Each is noticeably cheaper in one cost than the one before it, and about as cheap in the others."""
    costs = [np.array([[1.00], [1.04], [0.98]]), np.array([[0.98], [1.00], [1.04]]), np.array([[1.04], [0.98], [1.00]])]
    seen = [as_noticed(cost, Noticed(0.05)) for cost in costs]
    assert not_dominated(np.full((3, 1), 0.5), seen).any()


@pytest.mark.parametrize(("cost", "expected"), [(1.04, [False, True]), (1.06, [True, True])])
def test_a_better_variant_beats_one_that_is_only_unnoticeably_cheaper(cost, expected):
    seen = as_noticed(np.array([[1.0], [cost]]), Noticed(0.05))
    assert not_dominated(np.array([[0.5], [0.6]]), [seen])[:, 0].tolist() == expected
