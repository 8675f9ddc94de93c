from dataclasses import replace

import numpy as np
import pytest
from factories import paired_difference

from rag_lab.statistics.intervals import paired_differences
from rag_lab.statistics.randomization import step_down
from rag_lab.statistics.verdict import Answer, Family, WithFailures, sidak, smallest_difference


@pytest.mark.parametrize(("n", "family"), [(60, 1), (60, 15), (200, 7)])
def test_it_is_found_in_four_of_five_reruns(n: int, family: int) -> None:
    random = np.random.default_rng(0)
    critical = sidak(family, 0.05)
    smallest = smallest_difference(0.2 / n**0.5, n, critical)
    assert smallest is not None
    drawn = random.normal(smallest, 0.2, (n, 4000))
    t = np.abs(drawn.sum(axis=0)) / np.sqrt((drawn**2).sum(axis=0))
    assert (t >= critical).mean() == pytest.approx(0.8, abs=0.04)


def test_nothing_is_shown_without_spread_or_by_too_few() -> None:
    assert smallest_difference(0.0, 100, 2.0) is None
    assert smallest_difference(None, 100, 2.0) is None
    assert smallest_difference(0.1, 4, 2.0) is None
    assert smallest_difference(0.1, 100, None) is None


def test_one_comparison_is_the_normal_distributions() -> None:
    assert sidak(1, 0.05) == pytest.approx(1.959964)


def answer(*values: float, p: float = 0.001, n_tests: int = 1, higher_is_better: bool = True) -> Answer:
    family = Family(n_tests=n_tests, critical=2.0)
    return Answer(paired_difference(values, [0.0] * len(values)), p, p, family, higher_is_better=higher_is_better)


CLEAR = [0.5, 0.4, 0.6] * 12


def test_less_is_better_where_the_metric_says_so() -> None:
    assert answer(*[-one for one in CLEAR], higher_is_better=False).verdict == "better"
    assert answer(*CLEAR, higher_is_better=False).verdict == "worse"


def test_better_and_worse_need_a_small_corrected_p_value() -> None:
    assert answer(*CLEAR).verdict == "better"
    assert answer(*[-one for one in CLEAR]).verdict == "worse"
    among = replace(answer(*CLEAR, n_tests=10), p_corrected=0.051)
    by_chance = "among 10 comparisons some look like one by chance, corrected p = 0.051"
    assert among.verdict == f"the data cannot tell: {by_chance}"
    assert replace(among, family=Family(alpha=0.06)).verdict == "better"


def test_a_finding_stands_with_failures_at_the_worst_value() -> None:
    found = answer(*CLEAR)
    assert replace(found, failures=WithFailures(0.1, 0.03)).verdict == "better"
    for turned, told in ((-0.1, "\N{MINUS SIGN}0.100, corrected p = 0.010"), (0.1, "+0.100, corrected p = 0.060")):
        failures = WithFailures(turned, 0.01 if turned < 0 else 0.06)
        assert replace(found, failures=failures).verdict == (
            f"the data cannot tell: depends on failures: with each at the worst value the difference is {told}"
        )
    unbounded = replace(found, failures=WithFailures(None, None))
    assert unbounded.doubt == "depends on failures: the metric has no worst value with which they could count"


def test_nothing_below_the_noise_floor_is_found() -> None:
    found = replace(answer(*CLEAR), noise_floor=0.6)
    assert found.verdict == "the data cannot tell: +0.500 is below the noise floor of 0.600"
    assert replace(found, noise_floor=0.4).verdict == "better"


def test_comparisons_that_cannot_be_significant_say_so() -> None:
    assert answer(p=1.0).verdict == "no question has a score under both"
    assert answer(0.5, p=1.0).verdict == "the data cannot tell: only one question has a score under both"
    few = replace(answer(*[0.5] * 5, *[0.0] * 45, p=0.0625), p_corrected=None).verdict
    assert few == "the data cannot tell: only 5 questions differ, and with fewer than 6 no test can reach p < 0.05"


def test_where_test_and_interval_disagree_the_weaker_one_speaks() -> None:
    seen = paired_differences([([0.03] * 9 + [0.0] * 291, [0.0] * 300)], reach=[1.0])[0]
    rare = replace(answer(*CLEAR), difference=seen)
    assert rare.difference.low is not None and rare.difference.low < 0
    assert rare.verdict == "the data cannot tell: p = 0.001, but the interval holds zero: 9 of 300 questions differ"
    smallest = rare.smallest_difference
    assert smallest is not None and smallest > (rare.difference.high or 0.0) - (rare.difference.mean or 0.0)


def test_no_finding_tells_what_could_have_been_shown() -> None:
    open_one = answer(*np.random.default_rng(0).normal(0, 1, 100), p=0.5)
    smallest = open_one.smallest_difference
    assert smallest is not None and 0.25 < smallest < 0.35
    assert open_one.verdict == f"the data cannot tell: 100 questions could have shown a difference of {smallest:.3f}"


def test_the_smallest_difference_is_shown_four_times_in_five() -> None:
    random = np.random.default_rng(0)
    pilot = random.normal(0, 1, 80)
    critical = step_down(pilot[:, None]).critical(0.05)
    smallest = replace(answer(*pilot), family=Family(critical=critical)).smallest_difference
    assert smallest is not None
    rerun = pilot - pilot.mean() + smallest
    shown = [step_down(random.choice(rerun, (80, 1)), n_flips=999).alone[0] < 0.05 for _ in range(200)]
    assert 0.7 <= np.mean(shown) <= 0.9


def test_what_looks_like_a_difference_and_is_none_has_a_reason() -> None:
    apart = answer(*CLEAR, p=0.2)
    assert apart.doubt == "the interval leaves out zero, but the test does not: p = 0.200"
    assert answer(*CLEAR).doubt == ""
    assert answer(*[0.5, -0.5] * 20, p=1.0).doubt == ""
