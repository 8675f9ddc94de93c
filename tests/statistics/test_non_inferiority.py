from typing import Any

import numpy as np
import pandas as pd
import pytest
from factories import score_table
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from rag_lab.errors import ConfigError
from rag_lab.statistics.bounded_mean import p_mean_about, p_not_worse
from rag_lab.statistics.intervals import Units, paired_differences, units
from rag_lab.statistics.non_inferiority import (
    MOST_UNITS,
    for_margin,
    not_worse,
    not_worse_than_best,
    pilot_of,
    questions_for_margin,
)
from rag_lab.statistics.randomization import hommel
from rag_lab.statistics.summaries import SHARE, Scale, per_question

M = "retrieval.ndcg@5"
PAIR = {("b", "a"): {"b": 1.0, "a": -1.0}}


def table(variants: dict[str, list[float | None | str]]) -> pd.DataFrame:
    return score_table(variants, M).assign(repeat=0)


def one(scores: pd.DataFrame, margin: float = 0.05, **given: Any) -> dict[Any, Any]:
    (row,) = not_worse(scores, PAIR, {M: margin}, **given).to_dict("records")
    return row


def test_losses_of_all_or_nothing_are_the_exact_binomial_test() -> None:
    for lost in (0, 1, 2):
        row = one(table({"a": [1.0] * 117, "b": [0.0] * lost + [1.0] * (117 - lost)}))
        assert row["p_value"] == pytest.approx(binom.cdf(lost, 117, 0.05), rel=5e-3)
        assert row["n"] == 117 and row["difference"] == pytest.approx(-lost / 117)
        assert row["is_not_worse"] is (lost < 2)


def test_what_is_tied_failed_or_allowed_and_a_cluster_is_one_unit() -> None:
    ties = table({"a": [0.5] * 120, "b": [0.5] * 120})
    few = one(table({"a": [0.5] * 30, "b": [0.5] * 30}))
    of_clusters = one(ties, clusters={f"q{i}": i // 4 for i in range(120)})
    assert [few["p_value"], of_clusters["p_value"]] == pytest.approx([0.95**30] * 2, rel=5e-3)
    assert few["is_not_worse"] is False and few["reason"] == ""
    failed = one(table({"a": [0.5] * 50, "b": [None] * 50}))
    assert failed["p_value"] == pytest.approx(1.0) and failed["is_not_worse"] is False
    allowed = one(table({"a": [0.5] * 5, "b": [0.4] * 5}), 1.0)  # a margin as wide as the range is never failed
    assert allowed["p_value"] == pytest.approx(0, abs=1e-6) and allowed["is_not_worse"] is True
    assert not_worse(table({"a": [0.5]}), {}, {"other": 0.05}).empty


def test_failures_count_at_the_worst_for_the_variant_and_at_the_best_for_the_other() -> None:
    scores = table({"a": [0.5, 0.5, None, ""], "b": [None, 0.5, 0.5, 0.5]})
    row = one(scores)
    assert (row["n"], row["n_failed"]) == (3, 2)
    assert row["difference"] == pytest.approx(((0 - 0.5) + 0 + (0.5 - 1)) / 3)


def test_a_repeat_that_failed_counts_by_its_share() -> None:
    scores = pd.concat([table({"a": [0.5] * 4, "b": [0.5] * 4}), table({"b": [None, 0.5, 0.5, 0.5]}).assign(repeat=1)])
    assert one(scores)["difference"] == pytest.approx(-0.25 / 4)


def test_less_is_better_is_turned() -> None:
    scale = Scale(higher_is_better=False)
    better, worse = table({"a": [0.4] * 200, "b": [0.2] * 200}), table({"a": [0.2] * 200, "b": [0.4] * 200})
    assert one(better, scales={M: scale})["is_not_worse"] is True
    assert one(better, scales={M: scale})["difference"] == pytest.approx(-0.2)
    assert one(worse, scales={M: scale})["is_not_worse"] is False
    failed = one(table({"a": [0.5, 0.5], "b": [None, 0.5]}), scales={M: scale})
    assert failed["difference"] == pytest.approx((1 - 0.5) / 2)


def test_a_main_effect_is_a_contrast() -> None:
    random = np.random.default_rng(0)
    values = random.uniform(0.3, 0.7, (300, 4))
    scores = table({name: values[:, i].tolist() for i, name in enumerate("abcd")})
    weights = {"a": -0.5, "b": 0.5, "c": -0.5, "d": 0.5}
    (row,) = not_worse(scores, {"main": weights}, {M: 0.05}).to_dict("records")
    differences = values @ [-0.5, 0.5, -0.5, 0.5]
    assert row["contrast"] == "main" and row["difference"] == pytest.approx(differences.mean())
    assert row["p_value"] == pytest.approx(p_not_worse(differences[:, None], np.ones(300), 0.05, 1.0)[0])


def test_the_family_is_corrected_within_its_metric() -> None:
    random = np.random.default_rng(1)
    scores = table({name: random.uniform(0.4, 0.6, 100).tolist() for name in "abcd"})
    found = not_worse(scores, {(one, "a"): {one: 1.0, "a": -1.0} for one in "bcd"}, {M: 0.05})
    assert list(found["p_corrected"]) == pytest.approx(hommel(list(found["p_value"])))
    assert list(found["contrast"]) == [("b", "a"), ("c", "a"), ("d", "a")]


def test_the_best_is_each_of_the_others() -> None:
    random = np.random.default_rng(2)
    best = random.uniform(0.4, 0.6, 400)
    scores = table({"a": best.tolist(), "b": (best - 0.01).tolist(), "c": (best - 0.2).tolist()})
    found = not_worse_than_best(scores, ["a", "b", "c"], {M: 0.05}).set_index("variant_id")
    assert found["is_not_worse"].to_dict() == {"a": True, "b": True, "c": False}
    assert found.loc["b", "against"] == "a" and found.loc["c", "against"] == "a" and found.loc["a", "against"] == "b"
    alone = not_worse(scores, PAIR, {M: 0.05})["p_value"][0]
    assert found.loc["b", "p_value"] == pytest.approx(alone)


def test_a_variant_of_which_nothing_was_scored_is_no_rival_and_not_the_best() -> None:
    scores = table({"a": [0.5] * 200, "b": [0.5] * 200, "c": [None] * 200})
    found = not_worse_than_best(scores, ["a", "b", "c"], {M: 0.05}).set_index("variant_id")
    assert found["is_not_worse"].to_dict() == {"a": True, "b": True, "c": False}


@pytest.mark.parametrize(
    ("variants", "scales", "reason"),
    [
        ({"a": [0.5], "b": [0.5]}, {}, "one question cannot show that a loss is small"),
        ({"a": [0.5, ""], "b": ["", 0.5]}, {}, "no question cannot show that a loss is small"),
        ({"a": [0.5, 0.5]}, {}, "b has no score"),
        ({"a": [5.0, 0.5], "b": [3.0, 0.5]}, {}, "the metric has no worst or no best value"),
        ({"a": [0.5, 0.5], "b": [0.5, 0.5]}, {M: Scale(0.0, None)}, "the metric has no worst or no best value"),
    ],
)
def test_what_cannot_be_told_has_a_reason_and_no_number(variants: Any, scales: Any, reason: str) -> None:
    row = one(table(variants), scales=scales)
    assert row["reason"].startswith(reason)
    assert row["p_value"] is None and row["p_corrected"] is None and row["is_not_worse"] is False


@pytest.mark.parametrize("margin", [0.0, -0.1, 1.5, float("nan")])
def test_a_margin_outside_the_range_is_refused(margin: float) -> None:
    with pytest.raises(ConfigError, match=f"The margin of {M} is {margin}; it is the largest mean loss"):
        one(table({"a": [0.5], "b": [0.5]}), margin)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.0, 0.3, 1.0]), min_size=2, max_size=40), st.data())
def test_p_is_a_share_that_falls_with_the_margin_and_with_each_gain(losses: list[float], data: st.DataObject) -> None:
    sums, counts = np.array(losses)[:, None], np.ones(len(losses))
    narrow, wide = (p_not_worse(sums, counts, margin, 1.0)[0] for margin in (0.05, 0.2))
    assert 0 <= wide <= narrow + 1e-6 <= 1 + 2e-6
    better = sums.copy()
    better[data.draw(st.integers(0, len(losses) - 1))] = 1.0
    assert p_not_worse(better, counts, 0.05, 1.0)[0] <= narrow + 1e-3


def test_one_unit_has_no_test() -> None:
    with pytest.raises(ValueError, match="at least 2 units, got 1"):
        p_not_worse(np.zeros((1, 1)), np.ones(1), 0.05, 1.0)


PILOT_PAIR = {"b": {"b": 1.0, "a": -1.0}}
RANDOM = np.random.default_rng(0)
SPARSE = RANDOM.choice([0.0, 0.0, 0.0, 0.5, -0.5, -1.0, 1.0], (117, 5), p=[0.3, 0.2, 0.2, 0.13, 0.13, 0.02, 0.02])
REACH = np.ones(5)


def questions(n: int = 40, failed: int = 0, apart: int = 10) -> pd.DataFrame:
    rows = []
    for i in range(n):
        for variant, value in (("a", 0.5), ("b", 0.75 if i < apart else 0.5)):
            fails = variant == "b" and i >= n - failed
            rows.append((variant, f"q{i:02}", "m", None if fails else value, "failed" if fails else "scored", ""))
    table = pd.DataFrame(rows, columns=["variant_id", "question_id", "metric", "value", "status", "reason"])
    return per_question(table.sample(frac=1, random_state=0))


def test_differences_are_one_a_question_and_failures_count_at_the_worst() -> None:
    pilot = pilot_of(questions(failed=2), "m", PILOT_PAIR, SHARE)
    assert pilot.sums[:, 0].tolist() == [0.25] * 10 + [0.0] * 28 + [-0.5] * 2
    assert pilot.counts.sum() == 40 and pilot.reach is not None and pilot.reach.tolist() == [1.0]


def test_without_a_range_failures_do_not_count_and_nothing_has_a_reach() -> None:
    pilot = pilot_of(questions(failed=2), "m", PILOT_PAIR, Scale(None, None))
    assert pilot.counts.sum() == 38 and pilot.reach is None


def test_of_a_plan_less_is_better_is_turned() -> None:
    assert pilot_of(questions(), "m", PILOT_PAIR, Scale(higher_is_better=False)).sums.min() == -0.25


def test_clusters_are_summed() -> None:
    pilot = pilot_of(questions(), "m", PILOT_PAIR, SHARE, {f"q{i:02}": i // 5 for i in range(40)})
    assert pilot.sums[:, 0].tolist() == [1.25, 1.25, 0, 0, 0, 0, 0, 0]
    assert pilot.counts[:, 0].tolist() == [5.0] * 8
    assert pilot.problem(0, "cluster") == "only 2 of 8 clusters differ, too few to know how large differences become"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, ""),
        ({"n": 39}, "39 questions were compared, and it takes 40"),
        ({"apart": 5}, "only 5 of 40 questions differ, too few to know how large differences become"),
        ({"apart": 1}, "only 1 of 40 questions differs, too few to know how large differences become"),
        ({"apart": 0}, "none of 40 questions differs, too few to know how large differences become"),
    ],
)
def test_what_cannot_be_planned_has_a_reason(given: dict[str, int], said: str) -> None:
    assert pilot_of(questions(**given), "m", PILOT_PAIR, SHARE).problem(0) == said


def test_the_interval_that_is_planned_is_the_one_that_will_be_guarded() -> None:
    pilot = pilot_of(questions(), "m", PILOT_PAIR, SHARE)
    seen = paired_differences([([0.25] * 10 + [0.0] * 30, [0.0] * 40)], reach=[1.0])[0]
    assert seen.mean is not None and seen.low is not None
    assert pilot.interval_reach(0, 40) == pytest.approx(seen.mean - seen.low, rel=0.05)
    assert pilot.interval_reach(0, 160) == 0.0  # 40 will differ


def test_a_variant_that_was_not_run_has_no_question() -> None:
    pilot = pilot_of(questions(), "m", {**PILOT_PAIR, "c": {"c": 1.0, "a": -1.0}}, SHARE)
    assert pilot.problem(1) == "0 questions were compared, and it takes 40"
    assert np.isfinite(pilot.sums).all()


def said(values: np.ndarray, margin: float) -> list[float]:
    """Return the corrected p-values of a rerun with these differences."""
    columns = values.shape[1]
    return [
        float(p or 0)
        for p in hommel(list(p_mean_about(values + margin, np.ones_like(values), np.full(columns, margin - 1))))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("size", [40, 117])
def test_the_statement_comes_in_about_four_of_five_reruns_with_the_questions_named(size: int) -> None:
    random, comes = np.random.default_rng(size), []
    truth = SPARSE - SPARSE.mean(axis=0)
    for number in range(12):
        pilot = truth[random.integers(0, len(truth), size)]
        needed = for_margin(pilot, np.ones_like(pilot), 0.1, REACH, 100, seed=number)[0].needed[0]
        assert needed is not None
        comes += [said(truth[random.integers(0, len(truth), needed)], 0.1)[0] < 0.05 for _ in range(40)]
    assert 0.7 < np.mean(comes) < 0.92


def test_fewer_comparisons_and_wider_margins_take_fewer_questions() -> None:
    narrow, wide = (for_margin(SPARSE, np.ones_like(SPARSE), margin, REACH, 117) for margin in (0.05, 0.1))
    for one, other in zip(narrow, wide, strict=True):
        family, half, alone = one.needed
        assert family is not None and half is not None and alone is not None and other.needed[0] is not None
        assert alone <= half <= family and other.needed[0] < family and one.power < other.power
    assert all(0 <= one.power <= 1 for one in narrow)


def test_ties_take_as_many_as_could_hide_a_loss() -> None:
    # 0.95**59 < 0.05: with fewer questions a loss of 1.0 on 5% of them may stay unseen.
    assert questions_for_margin(units(np.zeros(60)), 0.05, 1.0) == pytest.approx(59, abs=6)
    assert for_margin(np.zeros((60, 1)), np.ones((60, 1)), 0.05, np.ones(1), 80)[0].power == 1.0
    assert for_margin(np.zeros((60, 1)), np.ones((60, 1)), 0.05, np.ones(1), 40)[0].power == 0.0


def test_clusters_are_units() -> None:
    column = Units(np.zeros(60), np.full(60, 4.0))
    assert questions_for_margin(column, 0.05, 1.0) == pytest.approx(59, abs=6)


def test_a_strict_step_takes_more() -> None:
    column = units(SPARSE[:, 0])
    one, many = (questions_for_margin(column, 0.1, 1.0, n) for n in (1, 20))
    assert one is not None and many is not None and one < many


def test_what_nobody_would_ask_is_none() -> None:
    assert questions_for_margin(units(RANDOM.choice([-1.0, 1.0], 50)), 0.01, 1.0) is None
    assert MOST_UNITS == 20_000
