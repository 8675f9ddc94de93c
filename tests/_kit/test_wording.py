import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab._kit import wording
from rag_lab._kit import wording as numbers


def test_counts_agree_with_their_noun_and_lists_end_with_and() -> None:
    assert [wording.counted(n, "question") for n in (0, 1, 1200)] == ["0 questions", "1 question", "1,200 questions"]
    assert [wording.listing(list("abc"[:n])) for n in (1, 2, 3)] == ["a", "a and b", "a, b and c"]
    found = [wording.some_of([str(name) for name in range(n)], most=3) for n in (0, 1, 3, 5)]
    assert found == ["", "0", "0, 1 and 2", "0, 1, 2 and 2 more"]


def test_verdicts_are_short_beside_the_difference_that_they_are_about() -> None:
    below = "+0.003 is below the noise floor of 0.019"
    assert wording.short_verdict(f"the data cannot tell: {below}") == wording.short_verdict(below) == below


def test_a_number_has_three_decimals_below_ten_and_fewer_above_and_a_zero_no_sign() -> None:
    written = ["0.712", "−0.045", "0.000", "10.0", "12.3", "1,000", "10,542"]
    assert [numbers.plain(value) for value in (0.71249, -0.0454, -0.0001, 10, 12.34, 1000, 10542.4)] == written
    assert [numbers.signed(value) for value in (0.0001, -0.0001, 2)] == ["0.000", "0.000", "+2.000"]


@pytest.mark.parametrize("missing", [None, math.nan, math.inf, "", "x"])
def test_what_is_no_number_is_a_dash(missing: object) -> None:
    assert numbers.plain(missing) == numbers.signed(missing) == numbers.seconds(missing) == numbers.DASH
    assert numbers.interval(missing, 1) == numbers.signed_interval(0, missing) == numbers.DASH


def test_both_ends_of_an_interval_have_the_same_decimals() -> None:
    assert numbers.interval(9.969, 10.83) == "10.0 to 10.8"
    assert numbers.signed_interval(-0.05, 0.1) == "−0.050 to +0.100"


def test_small_p_values_are_not_zero() -> None:
    assert numbers.p_value(0.0) == "< 0.001"
    assert numbers.p_value(0.0124) == "0.012"


@given(st.floats(-9.99, 9.99))
def test_a_written_score_reads_back(value: float) -> None:
    assert float(numbers.signed(value).replace(numbers.MINUS, "-")) == pytest.approx(value, abs=5.01e-4)
