from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab._kit import numbers


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
