from __future__ import annotations

import pytest

from rag_lab._kit import wording


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
