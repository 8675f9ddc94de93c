"""Bounds that hold at all looks, against the definition written out, and against what they promise."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.statistics.always_valid import is_above, lower_bound

ERROR = 0.05
VALUES = st.lists(st.floats(-1, 1, width=16), max_size=40)


def wealth(values, mean, looks):
    """What a gambler against `mean` ever had, value by value, as the paper has it."""
    have, most = [1.0] * len(looks), 0.0
    seen, total, spread = 0, 0.5, 1 / 16
    for value in values:
        share, claim = (value + 1) / 2, (mean + 1) / 2
        variance = spread / (seen + 1)
        for place, look in enumerate(looks):
            stake = min(math.sqrt(2 * math.log(1 / ERROR) / (variance * look)), 0.75 / claim)
            have[place] *= 1 + stake * (share - claim)
        seen, total = seen + 1, total + share
        spread += (share - total / (seen + 1)) ** 2
        most = max(most, sum(have) / len(have))
    return most


@settings(max_examples=60)
@given(VALUES, st.sampled_from([[10], [15, 40]]))
def test_the_bound_is_the_largest_mean_against_which_the_gambler_ever_won(values, looks):
    bound = lower_bound(values, 1.0, ERROR, looks)
    grid = np.linspace(-0.999, 0.999, 41)
    for mean in grid:
        if abs(mean - bound) > 1e-6:
            assert (wealth(values, mean, looks) >= 1 / ERROR) == (mean < bound)
            assert is_above(values, mean, 1.0, ERROR, looks) == (mean < bound)


@given(VALUES, st.floats(-1, 1, width=16), st.floats(0.5, 4))
def test_more_values_never_take_a_bound_back_and_a_scale_changes_nothing_else(values, more, reach):
    before = lower_bound(values, 1.0, ERROR, [40])
    after = lower_bound([*values, more], 1.0, ERROR, [40])
    assert -1 <= before <= after <= 1
    assert lower_bound([reach * value for value in values], reach, ERROR, [40]) == pytest.approx(reach * before)


def test_nothing_is_told_of_nothing_and_what_lies_beyond_is_refused():
    assert lower_bound([], 2.0, ERROR, [10]) == pytest.approx(-2)
    for wrong in ([1.1], [math.nan]):
        with pytest.raises(ValueError, match="between"):
            lower_bound(wrong, 1.0, ERROR, [10])


def test_the_bound_is_above_the_mean_as_seldom_as_promised_at_any_look_and_finds_what_there_is():
    random = np.random.default_rng(3)
    rare, found = 0, 0
    for _ in range(400):
        skewed = np.where(random.random(120) < 0.1, 0.9, -0.1)  # of mean 0
        rare += is_above(skewed, 0.0, 1.0, ERROR, [20, 60])
        found += is_above(np.clip(random.normal(0.25, 0.35, 60), -1, 1), 0.0, 1.0, ERROR, [20, 60])
    assert rare <= 400 * ERROR + 3 * math.sqrt(400 * ERROR * (1 - ERROR))
    assert found >= 380
