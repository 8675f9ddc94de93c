import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import zscore

from rag_lab.stages.retrieval.normalization import normalize

scores = st.lists(st.floats(-1e3, 1e3), max_size=12).map(lambda values: sorted(values, reverse=True))
METHODS = ["none", "min_max", "z_score", "rank", "reciprocal_rank"]


def test_each_method_on_one_list():
    given_scores = [9.0, 5.0, 1.0]
    assert normalize(given_scores, "none") == ([9, 5, 1], 0)
    assert normalize(given_scores, "min_max") == ([1, 0.5, 0], 0)
    assert normalize(given_scores, "rank") == (pytest.approx([1, 2 / 3, 1 / 3]), 0)
    assert normalize(given_scores, "reciprocal_rank", 60) == ([1 / 61, 1 / 62, 1 / 63], 0)
    values, absent = normalize(given_scores, "z_score")
    np.testing.assert_allclose(values, zscore(given_scores))
    assert absent == values[-1]


def test_equal_scores_are_all_the_best_or_all_the_mean():
    assert normalize([3.0, 3.0], "min_max") == ([1, 1], 0)
    assert normalize([3.0, 3.0], "z_score") == ([0, 0], 0)


@given(scores, st.sampled_from(METHODS))
def test_the_order_stays_and_absence_is_never_better_than_presence(given_scores, method):
    values, absent = normalize(given_scores, method)
    assert len(values) == len(given_scores)
    assert values == sorted(values, reverse=True)
    assert method == "none" or all(value >= absent for value in values)
