from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import permutation_test

from rag_lab.statistics.randomization import sign_flip_p_values, smallest_n


def scipy_p_value(differences: np.ndarray) -> float:
    result = permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=np.inf,
        alternative="two-sided",
        vectorized=True,
    )
    return float(result.pvalue)


@pytest.mark.parametrize("n", [2, 5, 8, 12])
def test_exact_p_values_are_scipys(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.3, 1, (n, 3))
    ours = sign_flip_p_values(differences, seed=0)
    assert ours == pytest.approx([scipy_p_value(differences[:, column]) for column in range(3)])


def test_random_flips_come_near_the_exact_p_value() -> None:
    differences = np.random.default_rng(1).normal(0.5, 1, (14, 1))
    exact = scipy_p_value(differences[:, 0])  # 2**14 flips
    assert sign_flip_p_values(differences, seed=0)[0] == pytest.approx(exact, abs=0.01)


def test_by_hand() -> None:
    # 1 + 2 + 3 = 6 is reached by +++ and --- of the eight sign patterns.
    assert sign_flip_p_values(np.array([[1.0], [2.0], [3.0]]), seed=0)[0] == 2 / 8


def test_ties_are_not_decided_by_rounding() -> None:
    # 0.1 + 0.2 differs from 0.3 in binary; in tenths the sums are 0.6 in two patterns and 0 in two.
    assert sign_flip_p_values(np.array([[0.1], [0.2], [-0.3]]), seed=0)[0] == 1.0


def test_a_random_p_value_is_never_zero() -> None:
    assert sign_flip_p_values(np.ones((40, 1)), seed=0)[0] == 1 / 10_001
    assert sign_flip_p_values(np.ones((40, 1)), seed=0, n_permutations=99)[0] == 1 / 100


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 7, 0.001])
def test_smallest_n(alpha: float) -> None:
    n = smallest_n(alpha)
    assert 2 / 2**n < alpha <= 2 / 2 ** (n - 1)
