from __future__ import annotations

import pytest
from statsmodels.stats.power import TTestPower

from rag_lab.statistics.power import power


@pytest.mark.parametrize("n", [5, 30, 200])
@pytest.mark.parametrize("difference", [0.02, -0.1, 0.3])
@pytest.mark.parametrize("comparisons", [1, 15])
def test_power_is_statsmodels(n: int, difference: float, comparisons: int) -> None:
    theirs = TTestPower().power(abs(difference) / 0.25, n, 0.05 / comparisons, alternative="two-sided")
    assert power(difference, 0.25, n, comparisons) == pytest.approx(theirs, abs=1e-6)


def test_no_difference_is_found_as_often_as_the_test_errs() -> None:
    assert power(0.0, 0.3, 50, 10) == pytest.approx(0.005)
    assert power(1e-9, 0.3, 50, 10) == pytest.approx(0.005, abs=1e-6)


def test_one_question_has_no_power() -> None:
    with pytest.raises(ValueError, match="at least 2 questions"):
        power(0.1, 0.2, 1)
