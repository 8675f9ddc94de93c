"""Two equal arms have nothing to choose between; arms that differ by class, or for good by question, have."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.statistics.routing_ceilings import class_ceiling, question_ceiling, repeated_differences
from rag_lab.statistics.summaries import Scale

CLASSES = ("specific", "fuzzy", "procedural", "comparative")
LOWER = Scale(higher_is_better=False)


def table(none: np.ndarray, always: np.ndarray, labelled: np.ndarray | None = None, **more: object) -> pd.DataFrame:
    ids = [f"q{index:04d}" for index in range(len(none))]
    columns = {"none": none, "always": always, "predicted": None, "labelled": labelled}
    return pd.DataFrame({"question_id": ids, **columns, **more})


def equal_arms(random: np.random.Generator, n: int, ties: float) -> pd.DataFrame:
    """Two draws from one distribution, many of them the same."""
    none, always = random.beta(4, 1, (2, n))
    always = np.where(random.random(n) < ties, none, always)
    return table(none, always, random.choice(CLASSES, n))


def repeats(d: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(d, index=[f"q{index:04d}" for index in range(len(d))])


@pytest.mark.slow
@pytest.mark.parametrize("ties", [0.0, 0.7])
def test_two_equal_arms_gain_nothing_beyond_chance(ties: float) -> None:
    random = np.random.default_rng(3)
    made = [equal_arms(random, 60, ties) for _ in range(50)]
    by_question = [question_ceiling(one) for one in made]
    assert np.mean([one.seen for one in by_question]) > (0.02 if ties else 0.05)  # what was told before
    for found in (by_question, [class_ceiling(one) for one in made]):
        assert abs(np.mean([one.gain for one in found])) < 0.005
        assert np.mean([one.low <= 0 <= one.high for one in found]) >= 0.9


@pytest.mark.slow
def test_classes_that_differ_leave_a_gain_and_the_interval_holds_it() -> None:
    random = np.random.default_rng(4)
    gains, held = [], []
    for _ in range(40):
        labelled = random.choice(CLASSES[:2], 100)
        none = random.uniform(0.2, 0.8, 100)
        always = none + np.where(labelled == "fuzzy", 0.15, -0.15) + random.normal(0, 0.15, 100)
        found = class_ceiling(table(none, always, labelled))
        gains.append(found.low > 0)
        held.append(found.low <= 0.075 <= found.high)  # half of the questions gain 0.15, over either arm
    assert np.mean(gains) > 0.9 and np.mean(held) >= 0.9


def test_the_arm_of_a_question_is_chosen_in_one_repeat_and_scored_in_the_others() -> None:
    d = np.array([[0.4, 0.2], [-0.2, 0.1], [-0.6, -0.4]])
    # In both HyDE loses for all. Chosen in the first q0 gains 0.2, in the second
    # q0 gains 0.4 and q1 loses 0.2.
    found = question_ceiling(table(np.zeros(3), d.mean(axis=1)), repeats(d))
    assert found.is_of_repeats and found.best_arm == "none" and found.n == 3
    assert found.gain == pytest.approx((0.2 + 0.4 - 0.2) / 2 / 3)


@pytest.mark.slow
def test_repeats_tell_what_lasts_from_what_does_not() -> None:
    random = np.random.default_rng(5)
    chance, lasting = [], []
    for _ in range(50):
        noise, own = random.normal(0, 0.2, (2, 80, 2)), random.normal(0, 0.2, (80, 1))
        chance.append(question_ceiling(table(np.zeros(80), noise[0].mean(axis=1)), repeats(noise[0])))
        both = own + noise[1] / 4
        lasting.append(question_ceiling(table(np.zeros(80), both.mean(axis=1)), repeats(both)))
    assert abs(np.mean([one.gain for one in chance])) < 0.005
    assert np.mean([one.low <= 0 <= one.high for one in chance]) >= 0.88
    assert min(one.low for one in lasting) > 0


def test_repeated_differences_are_those_of_questions_with_two_repeats_or_more() -> None:
    rows = [
        (arm, f"q{question}", "m", repeat, float(question + 2 * repeat * (arm == "b")), "scored")
        for arm in "ab"
        for question in range(3)
        for repeat in range(2)
    ]
    rows[-1] = (*rows[-1][:4], None, "failed")
    scores = pd.DataFrame(rows, columns=["variant_id", "question_id", "metric", "repeat", "value", "status"])
    found = repeated_differences(scores, "m", {"none": "a", "always": "b"}, {"q0": "d"})
    assert found.drop(columns="cluster").to_numpy().tolist() == [[0.0, 2.0], [0.0, 2.0]]
    assert list(found.index) == ["q0", "q1"] and found.loc["q0", "cluster"] == ("cluster", "d")


@given(st.integers(0, 40), st.integers(0, 99), st.booleans())
@settings(max_examples=15, deadline=None)
def test_ceilings_do_not_depend_on_the_order_of_rows_and_mirror(n: int, seed: int, clustered: bool) -> None:
    random = np.random.default_rng(seed)
    data = equal_arms(random, n, 0.5)
    data = data.assign(cluster=[index // 3 for index in range(n)]) if clustered else data
    turned = data.assign(none=1 - data["none"], always=1 - data["always"])
    for ceiling in (question_ceiling, class_ceiling):
        found, mirrored = ceiling(data), ceiling(turned, scale=LOWER)
        assert ceiling(data.sample(frac=1, random_state=seed)) == found
        if found.gain is None:
            assert n == 0
            continue
        assert found.seen >= -1e-9
        assert found.low is None or found.low <= found.gain + 1e-9 <= found.high + 2e-9
        assert (mirrored.seen, mirrored.gain) == pytest.approx((-found.seen, -found.gain), abs=1e-9)
        assert (mirrored.n, mirrored.best_arm) == (found.n, found.best_arm) or abs(found.seen) < 1e-9
