"""The area agrees with scipy's Mann-Whitney statistic, and its interval with what repeated sampling shows."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from rag_lab.statistics.auc import auc_interval


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


def test_a_judge_that_always_says_the_same_is_at_chance():
    found = auc_interval([([1.0], [1.0])] * 10)
    assert (found.mean, found.low, found.high) == (0.5, 0.5, 0.5)


def test_without_a_mistake_the_bound_is_exact_and_not_one():
    assert auc_interval([([1.0], [0.0])] * 3).low == pytest.approx(0.05 ** (1 / 3))
    assert auc_interval([([0.0], [1.0])] * 20).high == pytest.approx(1 - 0.05 ** (1 / 20))


@pytest.mark.parametrize("clusters", [[], [([], [])], [([1.0], [])]])
def test_nothing_to_compare_is_a_sentence(clusters):
    found = auc_interval(clusters)
    assert (found.mean, found.low) == (None, None)
    assert found.reason


def test_one_question_has_no_interval():
    assert auc_interval([([1.0], [0.0])]).low is None


def test_intervals_cover():
    """60 samples of 30 questions; the true area of normals one deviation apart is Phi(1 / sqrt 2)."""
    generator = np.random.default_rng(7)
    truth, covered = 0.7602, 0
    for _ in range(60):
        base = generator.normal(size=30)
        clusters = [([b + 1], [w]) for b, w in zip(base, generator.normal(size=30), strict=True)]
        found = auc_interval(clusters)
        covered += found.low <= truth <= found.high
    assert covered / 60 >= 0.88
