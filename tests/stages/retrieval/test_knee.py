import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.stages.retrieval.knee import before_largest_drop


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ([], 0),
        ([0.9], 1),
        ([0.9, 0.8, 0.3, 0.2], 2),
        ([0.9, 0.1, 0.05], 1),
        ([5, 5, 5], 3),
        ([5, 5, 1, 1], 2),
        ([3, 2, 1], 1),  # of equal drops, the first
    ],
)
def test_the_list_ends_before_its_largest_drop(scores, kept):
    assert before_largest_drop(scores) == kept


@given(st.lists(st.integers(-99, 99), min_size=1, max_size=9).map(lambda x: sorted(x, reverse=True)), st.integers(1, 5))
def test_scale_and_shift_do_not_matter_and_something_is_always_kept(scores, factor):
    kept = before_largest_drop(scores)
    assert 1 <= kept <= len(scores)
    assert before_largest_drop([factor * score + 7 for score in scores]) == kept
