import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.statistics.gain_share import gain_share

N = 40
RANDOM = np.random.default_rng(0)
FLOOR = RANDOM.uniform(0.0, 0.3, N)
CEILING = FLOOR + RANDOM.uniform(0.2, 0.6, N)
HALF = (FLOOR + CEILING) / 2


def test_the_bounds_reach_nothing_and_all_and_the_middle_half():
    found = [gain_share(values, FLOOR, CEILING).share for values in (FLOOR, HALF, CEILING)]
    assert found == pytest.approx([0.0, 0.5, 1.0])


def test_what_is_exactly_half_on_every_question_has_no_spread():
    found = gain_share(HALF, FLOOR, CEILING)
    assert (found.low, found.high) == pytest.approx((0.5, 0.5))


@settings(deadline=None, max_examples=50)
@given(st.floats(-0.5, 1.5), st.integers(0, 1000), st.sampled_from([0.1, 5.0]))
def test_the_share_lies_in_its_interval_and_units_and_direction_do_not_matter(share, seed, scale):
    values = FLOOR + share * (CEILING - FLOOR) + np.random.default_rng(seed).normal(0, 0.1, N)
    found = gain_share(values, FLOOR, CEILING)
    assert found.low < found.share < found.high
    other = gain_share(-scale * values + 3, -scale * FLOOR + 3, -scale * CEILING + 3, sign=-1)
    assert (other.share, other.low, other.high) == pytest.approx((found.share, found.low, found.high), abs=1e-6)


def test_the_interval_covers_as_often_as_it_says():
    """Of a gain that is four standard errors from zero."""
    random, covered = np.random.default_rng(1), 0
    for _ in range(2000):
        gain = random.normal(0.2, 0.3, 36)
        reached = 0.5 * gain + random.normal(0, 0.2, 36)
        found = gain_share(reached, np.zeros(36), gain)
        covered += found.low is None or found.low <= 0.5 <= found.high
    assert 0.93 < covered / 2000 < 0.97


def test_questions_that_depend_on_each_other_widen_the_interval():
    groups = np.repeat(np.arange(10), 4)
    values = HALF + np.repeat(np.random.default_rng(2).normal(0, 0.2, 10), 4)
    alone, together = (gain_share(values, FLOOR, CEILING, clusters=some) for some in (None, list(groups)))
    assert together.share == alone.share
    assert together.high - together.low > 1.3 * (alone.high - alone.low)


@pytest.mark.parametrize(
    ("values", "floors", "ceilings", "reason"),
    [
        ([], [], [], "no question has all three scores"),
        ([0.5] * 20, [0.4] * 20, [0.3] * 20, "there is no gain: the ceiling is not above the floor"),
        ([0.5] * 5, [0.1] * 5, [0.9] * 5, "too few questions to tell a share"),
        ([0.5] * 20, [0.0, 1.0] * 10, [1.1, 0.0] * 10, "the gain cannot be told from chance"),
    ],
)
def test_where_no_share_can_be_told_it_says_why(values, floors, ceilings, reason):
    found = gain_share(values, floors, ceilings)
    assert (found.share, found.low, found.high, found.n) == (None, None, None, len(values))
    assert found.reason == reason


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="one length"):
        gain_share([0.1], [0.1, 0.2], [0.3, 0.3])
