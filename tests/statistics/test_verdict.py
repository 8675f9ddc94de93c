from __future__ import annotations

import numpy as np
import pytest
from one_sample import paired_difference

from rag_lab.statistics.intervals import paired_differences
from rag_lab.statistics.verdict import units_needed, verdict


def difference(*values: float):
    return paired_difference(values, [0.0] * len(values))


def test_less_is_better_where_the_metric_says_so() -> None:
    fewer = difference(*[-0.5, -0.4, -0.6] * 8)
    assert verdict(fewer, 0.001, 1, higher_is_better=False) == "better"
    assert verdict(difference(*[0.5, 0.4, 0.6] * 8), 0.001, 1, higher_is_better=False) == "worse"


def test_better_and_worse_need_a_small_p_value() -> None:
    clear = difference(*[0.5, 0.4, 0.6] * 8)
    assert verdict(clear, 0.001, 1) == "better"
    assert verdict(difference(*[-0.5, -0.4, -0.6] * 8), 0.001, 1) == "worse"
    assert verdict(clear, 0.051, 10) == (
        "the data cannot tell: among 10 comparisons some look like one by chance, corrected p = 0.051; "
        "about 25 questions would settle a difference of +0.500"
    )


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([], "no question has a score under both"),
        ([0.5], "the data cannot tell: only one question has a score under both"),
        ([0.0] * 4, "no difference on any of the 4 questions"),
        ([0.5, -0.5, 0.0], "the data cannot tell: wins and losses cancel out over 3 questions"),
    ],
)
def test_plain_sentences(values: list[float], sentence: str) -> None:
    found = difference(*values)
    assert verdict(found, found.p_value, 1) == sentence


def test_needed_questions_by_hand() -> None:
    # sd 1, mean 0.2: ((1.960 + 0.842) * 1 / 0.2)**2 = 196.2, up to two digits.
    values = np.array([-1.0, 1.0] * 50) * np.sqrt(99 / 100) + 0.2
    assert units_needed(difference(*values), 1) == 200


def test_needed_questions_are_more_than_there_were_and_enough_for_the_test() -> None:
    assert units_needed(difference(0.1, 0.1, 0.1), 1) == 6  # 2 / 2**6 is the first below 0.05
    assert units_needed(difference(0.1, 0.1, 0.1), 100) == 12  # 2 / 2**12 the first below 0.0005
    assert units_needed(difference(*[0.5, 0.4] * 20), 1) == 41


def test_needed_questions_settle_it_four_times_in_five() -> None:
    random = np.random.default_rng(0)
    pilot = random.normal(0, 1, 60)
    pilot = (pilot - pilot.mean()) / pilot.std(ddof=1) + 0.3
    n = units_needed(difference(*pilot), 1)
    assert n is not None
    found = [difference(*random.normal(0.3, 1, n)).p_value < 0.05 for _ in range(40)]
    assert 0.6 <= np.mean(found) <= 0.95


def test_with_clusters_clusters_are_needed_not_questions() -> None:
    values = [0.5, 0.4, 0.6] * 20
    found = paired_differences([(values, [0.0] * 60)], clusters=[[number % 3 for number in range(60)]])[0]
    assert found.n_units == 3  # no test on three can find anything: 2 / 2**3 is far above 0.05
    assert verdict(found, 1.0, 1) == (
        "the data cannot tell: about 6 clusters of questions, not 3, would settle a difference of +0.500"
    )


def test_clusters_of_one_question_need_what_questions_need() -> None:
    values = list(np.random.default_rng(1).normal(0.2, 1, 80))
    found = paired_differences([(values, [0.0] * 80)], clusters=[list(range(80))])[0]
    assert units_needed(found, 3) == units_needed(difference(*values), 3)
