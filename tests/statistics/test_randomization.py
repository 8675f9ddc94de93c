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


@pytest.mark.parametrize("n", [2, 5, 8, 12, 15])
def test_exact_p_values_are_scipys(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.3, 1, (n, 3))
    ours = sign_flip_p_values(list(differences.T), seed=0)
    assert ours == pytest.approx([scipy_p_value(differences[:, column]) for column in range(3)])


def test_random_flips_come_near_the_exact_p_value() -> None:
    differences = np.random.default_rng(1).normal(0.5, 1, (16, 1))
    exact = scipy_p_value(differences[:, 0])  # 2**16 flips
    found = sign_flip_p_values([differences[:, 0]], seed=0)[0]
    assert found == pytest.approx(exact, abs=0.005) and found != exact


def test_what_can_be_enumerated_in_as_many_flips_is() -> None:
    column = np.random.default_rng(2).normal(0.5, 1, 9)
    exact = scipy_p_value(column)
    assert sign_flip_p_values([column], seed=0, n_permutations=2**9)[0] == pytest.approx(exact)
    assert sign_flip_p_values([column], seed=0, n_permutations=2**9 - 1)[0] != pytest.approx(exact)


def test_by_hand() -> None:
    # 1 + 2 + 3 = 6 is reached by +++ and --- of the eight sign patterns.
    assert sign_flip_p_values([np.array([1.0, 2.0, 3.0])], seed=0)[0] == 2 / 8


def test_ties_are_not_decided_by_rounding() -> None:
    # 0.1 + 0.2 differs from 0.3 in binary; in tenths the sums are 0.6 in two patterns and 0 in two.
    assert sign_flip_p_values([np.array([0.1, 0.2, -0.3])], seed=0)[0] == 1.0


def test_a_random_p_value_is_never_zero() -> None:
    assert sign_flip_p_values([np.ones(40)], seed=0)[0] == 1 / 50_001
    assert sign_flip_p_values([np.ones(40)], seed=0, n_permutations=99)[0] == 1 / 100


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 7, 0.001])
def test_smallest_n(alpha: float) -> None:
    n = smallest_n(alpha)
    assert 2 / 2**n < alpha <= 2 / 2 ** (n - 1)


def test_a_column_depends_on_neither_its_neighbours_nor_its_ties() -> None:
    random = np.random.default_rng(0)
    column, longer = random.normal(0.2, 1, 50), random.normal(0, 1, 90)
    alone = sign_flip_p_values([column], seed=0)[0]
    tied = np.concatenate([np.zeros(30), column[::-1]])
    assert list(sign_flip_p_values([longer, column, tied], seed=0)[1:]) == [alone, alone]


def test_few_differences_among_many_ties_are_enumerated() -> None:
    assert sign_flip_p_values([np.array([0.0] * 100 + [1.0] * 6)], seed=0)[0] == 2 / 2**6
    assert sign_flip_p_values([np.zeros(5), np.array([])], seed=0).tolist() == [1.0, 1.0]
