from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml
from factories import paired_difference
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.records import Question, Trace
from rag_lab.statistics import routing
from rag_lab.statistics.families import answers
from rag_lab.statistics.intervals import PairedDifference
from rag_lab.statistics.routing import (
    MIN_QUESTIONS,
    Trial,
    arm_pairs,
    by_class,
    confusion,
    cross_validated,
    learn_class_to_hyde,
    mistake_cost,
    p_value,
    routing_table,
)

RULE = {"specific": False, "fuzzy": True}


def table(*rows: tuple[float | None, float | None, str | None, str | None]) -> pd.DataFrame:
    columns = ["none", "always", "predicted", "labelled"]
    return pd.DataFrame(rows, columns=columns).assign(question_id=[f"q{index:04d}" for index in range(len(rows))])


def simulated(n: int, helps: float, seed: int = 0) -> pd.DataFrame:
    """HyDE changes fuzzy questions by `helps` and specific ones by its opposite; a fifth of the classes are wrong."""
    random = np.random.default_rng(seed)
    labelled = random.choice(["specific", "fuzzy"], n)
    predicted = np.where(random.random(n) < 0.2, np.where(labelled == "fuzzy", "specific", "fuzzy"), labelled)
    none = random.uniform(0.2, 0.8, n)
    always = none + np.where(labelled == "fuzzy", helps, -helps) + random.normal(0, 0.1, n)
    classified = np.where(predicted == "fuzzy", always, none)
    ids = [f"q{index:04d}" for index in range(n)]
    columns = {"none": none, "always": always, "classified": classified, "predicted": predicted, "labelled": labelled}
    return pd.DataFrame({"question_id": ids, **columns})


def told_by_class(data: pd.DataFrame) -> pd.DataFrame:
    long = data.melt(["question_id"], ["none", "always"], "variant_id", "value").astype({"value": float})
    status = np.where(long["value"].notna(), "scored", "failed")
    pairs = arm_pairs(data, "labelled", "m", {"none": "none", "always": "always"})
    found = answers(long.assign(metric="m", status=status, reason=""), [one.hypothesis for one in pairs])
    return by_class(data, "labelled", pairs, found)


def test_arms_are_compared_by_class() -> None:
    data = simulated(100, 0.1)
    found = told_by_class(data)
    assert list(dict.fromkeys(found["query_class"])) == ["all", "specific", "fuzzy"]
    part = data[data["labelled"] == "fuzzy"]
    ours = found.set_index(["query_class", "arm", "against"]).loc[("fuzzy", "always", "none")]
    theirs = paired_difference(list(part["always"]), list(part["none"]))
    assert (ours["difference"], ours["low"]) == pytest.approx((theirs.mean, theirs.low))
    assert (ours["n"], ours["verdict"]) == (len(part), "better")
    assert ours["mean"] - ours["mean_against"] == pytest.approx(ours["difference"])


def test_confusion_is_sklearns() -> None:
    data = simulated(200, 0.1)
    ours = confusion(data)
    theirs = confusion_matrix(data["labelled"], data["predicted"], labels=["specific", "fuzzy"])
    assert ours.to_numpy().tolist() == theirs.tolist()
    none_given = confusion(table((0.1, 0.2, None, "fuzzy"), (0.1, None, "fuzzy", "fuzzy"), (0.1, 0.1, "fuzzy", None)))
    assert none_given.loc["fuzzy"].to_dict() == {"fuzzy": 1, "none given": 1}


def test_mistakes_cost_what_the_wrong_arm_loses() -> None:
    data = table(
        (0.2, 0.6, "specific", "fuzzy"),  # should have had HyDE: loses 0.4
        (0.9, 0.1, "fuzzy", "specific"),  # should not have had it: loses 0.8
        (0.3, 0.1, "specific", "fuzzy"),  # gains 0.2 by mistake
        (0.5, 0.0, "fuzzy", "fuzzy"),
        (0.0, 1.0, "comparative", "specific"),  # wrong, but both go without HyDE
        (0.0, 1.0, "fuzzy", None),  # not labelled: does not count
    )
    found = mistake_cost(data, RULE).set_index(["labelled", "predicted"])
    assert found.loc[("all", "all"), ["n", "n_routed_otherwise"]].tolist() == [5, 3]
    assert found.loc[("all", "all"), "cost"] == pytest.approx((0.4 + 0.8 - 0.2) / 5)
    assert found.loc[("fuzzy", "specific"), "cost"] == pytest.approx(0.1)
    assert found.loc[("specific", "comparative"), ["n", "n_routed_otherwise", "cost"]].tolist() == [1, 0, 0.0]


def test_a_rule_is_learned_where_there_is_one() -> None:
    found = learn_class_to_hyde(simulated(200, 0.2), seed=1)
    assert found.class_to_hyde["fuzzy"] and not found.class_to_hyde["specific"]
    assert set(found.gains) == {"none", "always", "best_arm", "classified"}
    gain = found.gains["best_arm"]
    assert gain.low is not None and gain.low > 0
    # What it chose is what the present rule does, and the folds agree: no difference on any question.
    assert found.gains["classified"].ties == 200
    assert found.reasons["creative"] == "off: 0 questions, fewer than 5"


@pytest.mark.slow
def test_no_gain_is_claimed_from_noise() -> None:
    """On the data it was chosen on, a rule always looks good; by cross-validation it must not."""
    apparent, validated, claimed = [], [], 0
    for seed in range(30):
        random = np.random.default_rng(seed)
        none = random.uniform(0.2, 0.8, 80)
        data = pd.DataFrame(
            {
                **{"question_id": range(80), "none": none, "always": none + random.normal(0, 0.2, 80)},
                **{"predicted": random.choice(["specific", "fuzzy", "comparative", "procedural", "creative"], 80)},
                "labelled": None,
            }
        )
        found = learn_class_to_hyde(data, seed=seed, repetitions=5)
        on = np.array([found.class_to_hyde[name] for name in data["predicted"]])
        apparent.append(((data["always"] - data["none"]) * on).mean())
        gain = found.gains["none"]
        validated.append(gain.mean)
        claimed += gain.low is not None and gain.low > 0
    assert np.mean(apparent) > 0.015
    assert abs(np.mean(validated)) < 0.008
    assert claimed <= 3


def test_the_rule_is_a_configuration_that_loads() -> None:
    found = learn_class_to_hyde(simulated(60, 0.2), repetitions=2)
    preset = PipelineConfig.parse(yaml.safe_load(found.to_yaml()))
    assert preset.query.hyde == "classified" and dict(preset.query.class_to_hyde) == found.class_to_hyde
    whole = PipelineConfig.parse(yaml.safe_load(found.to_yaml(PipelineConfig().override({"rerank.final_k": 3}))))
    assert (whole.rerank.final_k, whole.query.class_to_hyde) == (3, found.class_to_hyde)
    assert found.to_yaml().startswith("# Learned from 60 questions: HyDE for fuzzy.\n# Against no HyDE, ")


def test_the_rule_of_a_class_that_a_custom_classifier_gave_is_written_too() -> None:
    table = simulated(60, 0.2).replace({"predicted": {"fuzzy": "legal"}})
    assert yaml.safe_load(learn_class_to_hyde(table, repetitions=2).to_yaml())["query"]["class_to_hyde"]["legal"]


def test_the_order_of_rows_does_not_matter() -> None:
    data = simulated(50, 0.05)
    shuffled = data.sample(frac=1, random_state=3)
    assert learn_class_to_hyde(data, repetitions=3) == learn_class_to_hyde(shuffled, repetitions=3)
    assert told_by_class(data).equals(told_by_class(shuffled))


@pytest.mark.parametrize("rows", [[], [(0.5, 0.5, "fuzzy", "fuzzy")], [(None, 0.5, "fuzzy", "fuzzy")] * 3])
@pytest.mark.parametrize("copies", [1, 4])
def test_degenerate_data_give_sentences(rows: list[tuple[float, float, str, str]], copies: int) -> None:
    data = table(*rows * copies)
    assert all("nan" not in text for text in learn_class_to_hyde(data).sentences())
    assert told_by_class(data)["verdict"].map(bool).all()
    for value in mistake_cost(data, RULE)["cost"]:
        assert value is None or np.isfinite(value)
    confusion(data)


def test_the_table_is_made_from_scores_and_traces() -> None:
    scores = pd.DataFrame(
        [
            ("a", "q0", "m", 0, 0.5, "scored", ""),
            ("a", "q1", "m", 0, None, "failed", "timeout"),
            ("b", "q0", "m", 0, 0.6, "scored", ""),
            ("b", "q0", "other", 0, 0.1, "scored", ""),
        ],
        columns=["variant_id", "question_id", "metric", "repeat", "value", "status", "reason"],
    )
    traces = [Trace(Question("q0", "?", query_class="fuzzy"), query_class="specific")]
    found = routing_table(scores, "m", {"none": "a", "always": "b"}, traces).set_index("question_id")
    assert found.loc["q0"].tolist() == [0.5, 0.6, "specific", "fuzzy"]
    assert found.loc["q1"].isna().all()
    with pytest.raises(ConfigError, match="missing: always"):
        routing_table(scores, "m", {"none": "a"})


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
    found = replace(trial(n, max(2, n // 5) if clustered else n, seed), repetitions=1 + seed % 3)
    folds = routing._folds(found.classes, found, np.random.default_rng(seed))
    by_hand = np.sum([learned_by_hand(found, fold) for fold in folds], axis=0) / found.repetitions
    assert np.array_equal(cross_validated(found, found.classes, np.random.default_rng(seed)), by_hand)


@given(st.integers(2, 40), st.integers(2, 12), st.integers(0, 99))
@settings(max_examples=60)
def test_a_cluster_is_in_one_fold_and_folds_have_as_many_clusters(n: int, n_groups: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(n_groups), random.integers(0, n_groups, size=n)])
    classes = random.integers(0, 4, size=len(groups))
    (fold,) = routing._folds(classes, Trial(np.zeros(len(groups)), classes, groups, folds=3, repetitions=1), random)
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
    dealt = routing.dealt_out(classes, groups, np.random.default_rng(0))
    assert all(len(set(dealt[groups == group].tolist())) == 1 for group in range(3))
    assert {int(dealt[groups == group][0]) for group in range(3)} == {1, 2, 3}


def test_what_a_rule_gains_is_said_of_each_arm_also_where_nothing_was_scored():
    gains = {
        "none": PairedDifference(0.1, 0.05, 0.15, 8, 1, 1, 10),
        "always": PairedDifference(0.1, -0.05, 0.25, 6, 0, 4, 10),
        "best_arm": PairedDifference(0.0, 0.0, 0.0, 0, 10, 0, 10),
        "classified": PairedDifference(None, None, None, 0, 0, 0, 0),
    }
    rule = routing.LearnedRouting({"fuzzy": True, "specific": False}, {}, gains, 10, 0.01)
    learned, none, always, best, present = rule.sentences()
    assert learned == "Learned from 10 questions: HyDE for fuzzy."
    assert "+0.100" in none and "chance" not in none
    assert always.endswith("which the data cannot tell from chance.")
    assert best.endswith("no question changes.") and present.endswith("no question was scored.")
