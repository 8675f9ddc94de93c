"""The area agrees with scipy's Mann-Whitney statistic, and its interval with what repeated sampling shows."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from rag_lab.statistics.auc import auc_interval

SCORES = st.lists(st.integers(0, 4).map(float), max_size=3)


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


@pytest.mark.parametrize("clusters", [[], [([], [])], [([1.0], [])]])
def test_nothing_to_compare_is_a_sentence(clusters):
    found = auc_interval(clusters)
    assert (found.mean, found.low) == (None, None)
    assert found.reason


def test_one_question_has_no_interval():
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
