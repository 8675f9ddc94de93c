from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab._kit import wording
from rag_lab._kit import wording as numbers


@pytest.mark.parametrize(("n", "written"), [(0, "0 questions"), (1, "1 question"), (1200, "1,200 questions")])
def test_counts_agree_with_their_noun(n: int, written: str) -> None:
    assert wording.counted(n, "question") == written


@pytest.mark.parametrize(("names", "written"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")])
def test_lists_end_with_and(names: list[str], written: str) -> None:
    assert wording.listing(names) == written


@pytest.mark.parametrize(("n", "written"), [(0, ""), (1, "0"), (3, "0, 1 and 2"), (5, "0, 1, 2 and 2 more")])
def test_of_many_names_some_are_written(n: int, written: str) -> None:
    assert wording.some_of([str(name) for name in range(n)], most=3) == written


@pytest.mark.parametrize(
    ("said", "written"),
    [
        (
            "the data cannot tell: 30 questions could have shown a difference of 0.070",
            "30 questions could have shown a difference of 0.070",
        ),
        (
            "the data cannot tell: +0.003 is below the noise floor of 0.019",
            "+0.003 is below the noise floor of 0.019",
        ),
        ("better", "better"),
        ("no difference on any of the 5 questions", "no difference on any of the 5 questions"),
    ],
)
def test_verdicts_are_short_beside_the_difference_that_they_are_about(said: str, written: str) -> None:
    assert wording.short_verdict(said) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.71249, "0.712"), (-0.0454, "−0.045"), (-0.0001, "0.000"), (12.34, "12.3"), (10542.4, "10,542")],
)
def test_plain(value: float, written: str) -> None:
    assert numbers.plain(value) == written


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
