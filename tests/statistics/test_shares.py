import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from rag_lab.statistics.shares import auc_interval, gain_share, krippendorff_alpha

N = 40
RANDOM = np.random.default_rng(0)
FLOOR = RANDOM.uniform(0.0, 0.3, N)
CEILING = FLOOR + RANDOM.uniform(0.2, 0.6, N)
HALF = (FLOOR + CEILING) / 2
SCORES = st.lists(st.integers(0, 4).map(float), max_size=3)


def test_the_bounds_reach_nothing_and_all_and_the_middle_half_without_a_spread():
    found = [gain_share(values, FLOOR, CEILING) for values in (FLOOR, HALF, CEILING)]
    assert [one.mean for one in found] == pytest.approx([0.0, 0.5, 1.0])
    assert (found[1].low, found[1].high) == pytest.approx((0.5, 0.5))


@settings(deadline=None, max_examples=50)
@given(st.floats(-0.5, 1.5), st.integers(0, 1000), st.sampled_from([0.1, 5.0]))
def test_the_share_lies_in_its_interval_and_units_and_direction_do_not_matter(share, seed, scale):
    values = FLOOR + share * (CEILING - FLOOR) + np.random.default_rng(seed).normal(0, 0.1, N)
    found = gain_share(values, FLOOR, CEILING)
    assert found.low < found.mean < found.high
    other = gain_share(-scale * values + 3, -scale * FLOOR + 3, -scale * CEILING + 3, sign=-1)
    assert (other.mean, other.low, other.high) == pytest.approx((found.mean, found.low, found.high), abs=1e-6)


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
    assert together.mean == alone.mean
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
    assert (found.mean, found.low, found.high, found.n) == (None, None, None, len(values))
    assert found.reason == reason


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="one length"):
        gain_share([0.1], [0.1, 0.2], [0.3, 0.3])


def test_the_area_is_mann_whitneys_u():
    generator = np.random.default_rng(1)
    right, wrong = generator.integers(1, 6, 30) / 4, generator.integers(0, 5, 30) / 4
    found = auc_interval([([r], [w]) for r, w in zip(right, wrong, strict=True)])
    assert found.mean == pytest.approx(mannwhitneyu(right, wrong).statistic / 900)
    assert found.low < found.mean < found.high
    assert found.n == 30


def test_several_wrong_answers_to_a_question_and_none():
    found = auc_interval([([1.0], [0.0, 1.0]), ([0.5], []), ([], [0.5]), ([], [])])
    # right 1 against 0, 1, 0.5: 1 + 0.5 + 1; right 0.5 against the same: 1 + 0 + 0.5
    assert (found.mean, found.n) == (pytest.approx(4 / 6), 3)


def test_the_ends_are_areas_whose_own_standard_error_is_1_96_times_in_the_distance():
    """Newcombe's method 5, where the scores spread no more over the questions than its formula has it."""
    found = auc_interval([([1.0], [0.0]), ([1.0], [0.0]), ([1.0], [1.0])] * 4)
    for end in (found.low, found.high):
        spread = 1 + 11 * ((1 - end) / (2 - end) + end / (1 + end))
        assert abs(found.mean - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) * spread) / 12, abs=1e-6)


def test_misses_that_are_whole_questions_widen_the_interval():
    told = [([2.0], [1.0])] * 15
    spread = auc_interval([*told, *[([1.0], [1.0])] * 10])
    whole = auc_interval([*told, *[([2.0], [1.0])] * 5, *[([0.0], [1.0])] * 5])
    assert spread.mean == whole.mean == 0.8
    assert whole.high - whole.low > 1.1 * (spread.high - spread.low)


def test_a_judge_that_always_says_the_same_is_at_chance_and_few_questions_do_not_prove_it():
    found, more = (auc_interval([([1.0], [1.0])] * n) for n in (10, 100))
    assert found.mean == 0.5 and found.low == pytest.approx(1 - found.high)
    assert found.high - found.low > 2 * (more.high - more.low)


def test_without_a_mistake_the_interval_ends_at_one_and_is_two_sided():
    # the root of (1 - a) ** 2 = 1.96 ** 2 * variance(a)
    assert auc_interval([([1.0], [0.0])] * 20).low == pytest.approx(0.8987, abs=1e-4)
    assert auc_interval([([1.0], [0.0])] * 20).high == 1.0
    assert auc_interval([([0.0], [1.0])] * 20).high == pytest.approx(1 - 0.8987, abs=1e-4)


@given(st.lists(st.tuples(SCORES, SCORES), min_size=2, max_size=12))
def test_the_interval_holds_the_area_keeps_to_the_range_and_mirrors(clusters):
    found, turned = auc_interval(clusters), auc_interval([(wrong, right) for right, wrong in clusters])
    if found.low is None:
        assert found.reason
        return
    assert 0 <= found.low <= found.mean <= found.high <= 1 and found.low < found.high
    assert (turned.low, turned.high) == pytest.approx((1 - found.high, 1 - found.low), abs=1e-6)


def test_nothing_to_compare_is_a_sentence_and_one_question_has_no_interval():
    for clusters in ([], [([], [])], [([1.0], [])]):
        found = auc_interval(clusters)
        assert (found.mean, found.low) == (None, None) and found.reason
    assert auc_interval([([1.0], [0.0])]).low is None


@pytest.mark.parametrize(("n", "area"), [(5, 0.9), (10, 0.95), (20, 0.8), (20, 0.5)])
def test_intervals_cover(n, area):
    """400 samples of verdicts that are right in a share `area` of cases; 93% less what 400 samples can be off."""
    generator, covered = np.random.default_rng([7, n]), 0
    for _ in range(400):
        right, wrong = (generator.random(n) < area) * 1.0, (generator.random((n, 3)) > area) * 1.0
        found = auc_interval(list(zip(right[:, None].tolist(), wrong.tolist(), strict=True)))
        covered += found.low <= area <= found.high
    assert covered / 400 >= 0.91


# Krippendorff (2011), section C: four observers, twelve units, missing data; nominal alpha is .743.
OBSERVED = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""


def test_alpha_is_that_of_the_published_example():
    rows = [line.split() for line in OBSERVED.strip().splitlines()]
    units = [[one for one in column if one != "."] for column in zip(*rows, strict=True)]
    assert krippendorff_alpha(units) == pytest.approx(0.743, abs=5e-4)


def test_alpha_is_one_where_all_agree_and_nothing_where_nothing_could_differ():
    assert krippendorff_alpha([["keep", "keep"], ["drop", "drop"]]) == 1
    assert krippendorff_alpha([["keep", "drop"], ["drop", "keep"]]) < 0
    assert krippendorff_alpha([["keep", "keep"], ["keep", "keep"]]) is None
    assert krippendorff_alpha([["keep"], ["drop"], []]) is None
