import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_lab.statistics.intervals import PairedDifference
from rag_lab.statistics.routing import learned_routing
from rag_lab.statistics.routing.learned_routing import MIN_QUESTIONS, Trial, cross_validated, p_value


def trial(n: int, n_groups: int, seed: int, effect: float = 0.0) -> Trial:
    """Questions of four classes, some of none, in the second of which HyDE adds `effect`."""
    random = np.random.default_rng(seed)
    classes = random.integers(0, 5, size=n)
    gain = random.normal(0, 0.2, size=n) + effect * np.where(classes == 2, 1.0, -1.0)
    groups = np.arange(n) if n_groups == n else np.arange(n) % n_groups
    return Trial(gain, classes, groups, folds=min(5, n_groups), repetitions=1)


def learned_by_hand(given: Trial, fold: np.ndarray) -> tuple[list[float], list[float]]:
    """One repetition, question by question."""
    by_class, for_all = [], []
    for number in range(len(given.gain)):
        train = [other for other in range(len(given.gain)) if fold[other] != fold[number]]
        alike = [given.gain[other] for other in train if given.classes[other] == given.classes[number]]
        is_on = len(alike) >= MIN_QUESTIONS and sum(alike) / len(alike) > 1e-12
        by_class.append(float(is_on and given.classes[number] != 0))
        for_all.append(float(sum(given.gain[other] for other in train) / len(train) > 1e-12))
    return by_class, for_all


@given(st.integers(2, 60), st.integers(0, 99), st.booleans())
@settings(max_examples=60)
def test_rules_are_those_learned_on_the_other_folds(n: int, seed: int, clustered: bool) -> None:
    found = trial(n, max(2, n // 5) if clustered else n, seed)
    fold = learned_routing._folds(found.classes, found.groups, found.folds, np.random.default_rng(seed))
    by_class, for_all = cross_validated(found, found.classes, np.random.default_rng(seed))
    assert (by_class.tolist(), for_all.tolist()) == learned_by_hand(found, fold)


@given(st.integers(2, 40), st.integers(2, 12), st.integers(0, 99))
@settings(max_examples=60)
def test_a_cluster_is_in_one_fold_and_folds_have_as_many_clusters(n: int, n_groups: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(n_groups), random.integers(0, n_groups, size=n)])
    fold = learned_routing._folds(random.integers(0, 4, size=len(groups)), groups, 3, random)
    of_group = [set(fold[groups == group].tolist()) for group in range(n_groups)]
    assert all(len(folds) == 1 for folds in of_group)
    sizes = np.bincount([min(folds) for folds in of_group], minlength=3)
    assert sizes.max() - sizes.min() <= 1


def test_classes_that_matter_are_told_from_classes_dealt_out_at_random() -> None:
    assert p_value(trial(100, 100, 1, effect=0.2), seed=0) == pytest.approx(1 / 500)
    assert p_value(trial(100, 20, 1, effect=0.2), seed=0) <= 0.02


def test_without_an_effect_a_gain_is_found_as_often_as_the_level_says() -> None:
    found = [p_value(trial(60, 60, seed), seed, n_permutations=99) <= 0.05 for seed in range(100)]
    assert sum(found) <= 10  # 98.9% of the time, where the rate is 5%


def test_clusters_swap_their_classes_as_a_whole() -> None:
    groups = np.array([0, 0, 0, 1, 1, 2])
    classes = np.array([1, 1, 1, 2, 2, 3])
    dealt = learned_routing.dealt_out(classes, groups, np.random.default_rng(0))
    assert all(len(set(dealt[groups == group].tolist())) == 1 for group in range(3))
    assert {int(dealt[groups == group][0]) for group in range(3)} == {1, 2, 3}


def test_what_a_rule_gains_is_said_of_each_arm_also_where_nothing_was_scored():
    gains = {
        "none": PairedDifference(0.1, 0.05, 0.15, 8, 1, 1, 10),
        "always": PairedDifference(0.1, -0.05, 0.25, 6, 0, 4, 10),
        "best_arm": PairedDifference(0.0, 0.0, 0.0, 0, 10, 0, 10),
        "classified": PairedDifference(None, None, None, 0, 0, 0, 0),
    }
    rule = learned_routing.LearnedRouting({"fuzzy": True, "specific": False}, {}, gains, 10, 0.01)
    learned, none, always, best, present = rule.sentences()
    assert learned == "Learned from 10 questions: HyDE for fuzzy."
    assert "+0.100" in none and "chance" not in none
    assert always.endswith("which the data cannot tell from chance.")
    assert best.endswith("no question changes.") and present.endswith("no question was scored.")
