"""One answer a comparison, in two families; failures cannot make a finding."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from factories import comparisons, score_table
from factories import score_table as scores
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from rag_lab.statistics.families import COMPARISON_COLUMNS, Hypothesis, Options, answers
from rag_lab.statistics.noise_components import NoiseComponents
from rag_lab.statistics.randomization import step_down
from rag_lab.statistics.summaries import Scale, summary

FAILED = float("nan")


def metric_scores(metrics: dict[str, dict[str, Any]]) -> pd.DataFrame:
    return pd.concat([score_table(columns, metric) for metric, columns in metrics.items()], ignore_index=True)


def columns(n: int, k: int, seed: int = 0, lift: float = 0.0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    base = random.uniform(0.3, 0.6, n)
    return {f"v{i}": np.clip(base + random.normal(lift * (i > 0), 0.15, n), 0, 1) for i in range(k)}


def pair(variant: str, against: str = "v0", metric: str = "m", primary: bool = True) -> Hypothesis:
    return Hypothesis.of_pair(metric, variant, against, primary)


def test_the_families_are_corrected_apart() -> None:
    found = columns(60, 5, lift=0.04)
    wanted = [pair(f"v{i}") for i in range(1, 5)]
    others = [pair(f"v{i}", metric="other", primary=False) for i in range(1, 5)]
    alone = answers(metric_scores({"m": found}), wanted)
    both = answers(metric_scores({"m": found, "other": columns(60, 5, 1)}), [*wanted, *others])
    assert [both[one].p_corrected for one in wanted] == [alone[one].p_corrected for one in wanted]
    order = sorted(range(60), key=lambda number: f"q{number}")  # units are flipped in that of their ids
    by_hand = step_down(np.stack([found[f"v{i}"] - found["v0"] for i in range(1, 5)], axis=1)[order])
    assert [both[one].p_corrected for one in wanted] == pytest.approx(list(by_hand.adjusted))
    assert {both[one].family.name for one in others} == {"secondary"}
    assert {both[one].family.n_tests for one in (*wanted, *others)} == {4}


def test_strict_families_share_five_percent() -> None:
    wanted = [pair("v1"), pair("v1", metric="other", primary=False)]
    table = metric_scores({"m": columns(60, 2), "other": columns(60, 2, 1)})
    found = answers(table, wanted, Options(strict=True))
    assert [found[one].family.alpha for one in wanted] == [0.04, 0.01]


def test_one_comparison_has_one_answer_whatever_it_is_called() -> None:
    table = metric_scores({"m": columns(60, 3, lift=0.05)})
    first, mirrored = pair("v1"), pair("v0", "v1", primary=False)
    with_third = Hypothesis("m", (("v1", 1.0), ("v0", -1.0), ("v2", 0.0)))  # the same questions: v2 has all scores
    of_all = Hypothesis("m", (("v1", 1.0), ("v0", -1.0)), frozenset(f"q{i}" for i in range(60)))
    found = answers(table, [first, mirrored, with_third, of_all])
    assert {found[one].p_corrected for one in found} == {found[first].p_corrected}
    assert {found[one].family for one in found} == {found[first].family}
    assert found[first].family.n_tests == 1
    assert found[mirrored].difference.mean == -(found[first].difference.mean or 0)


def test_on_other_questions_it_is_another_comparison() -> None:
    table = metric_scores({"m": columns(60, 2, lift=0.05)})
    half = Hypothesis("m", (("v1", 1.0), ("v0", -1.0)), frozenset(f"q{i}" for i in range(30)))
    found = answers(table, [pair("v1"), half])
    assert (found[half].difference.n, found[half].family.name) == (30, "secondary")


def test_what_cannot_be_significant_leaves_the_family() -> None:
    found = columns(60, 3, lift=0.05)
    few = found["v0"].copy()
    few[:5] += 0.3
    table = metric_scores({"m": found | {"few": few, "same": found["v0"]}})
    wanted = [pair("v1"), pair("v2"), pair("few"), pair("same")]
    answered = answers(table, wanted)
    without = answers(table, wanted[:2])
    assert [answered[one].p_corrected for one in wanted] == [
        *(without[one].p_corrected for one in wanted[:2]),
        None,
        None,
    ]
    assert "only 5 questions differ" in answered[wanted[2]].verdict
    assert answered[wanted[2]].p_value == pytest.approx(2 / 2**5)


def test_a_variant_that_fails_on_its_bad_answers_is_not_better() -> None:
    random = np.random.default_rng(3)
    base = random.integers(0, 2, 80).astype(float)
    other = random.permutation(base)
    hidden = np.where(other == 0, FAILED, other)
    table = metric_scores({"m": {"v0": base, "v1": hidden}})
    one = answers(table, [pair("v1")])[pair("v1")]
    assert one.difference.mean is not None and one.difference.mean > 0.4
    assert one.p_corrected is not None and one.p_corrected < 0.01
    assert one.verdict.startswith("the data cannot tell: depends on failures: with each at the worst value")


def test_a_metric_without_a_worst_value_cannot_excuse_failures() -> None:
    found = columns(60, 2, lift=0.2)
    found["v1"][0] = FAILED
    table = metric_scores({"m": found})
    assert answers(table, [pair("v1")])[pair("v1")].verdict == "better"
    unbounded = answers(table.assign(value=table["value"] * 9), [pair("v1")], Options(scales={"m": Scale(None, None)}))
    assert "the metric has no worst value" in unbounded[pair("v1")].verdict


def test_clusters_flip_together() -> None:
    random = np.random.default_rng(1)
    by_document = np.repeat(random.normal(0.1, 0.2, 20), 5)
    table = metric_scores({"m": {"v0": np.full(100, 0.5), "v1": 0.5 + by_document / 4}})
    clusters = {f"q{i}": i // 5 for i in range(100)}
    alone = answers(table, [pair("v1")])[pair("v1")]
    clustered = answers(table, [pair("v1")], Options(clusters=clusters))[pair("v1")]
    assert clustered.p_value is not None and alone.p_value is not None
    assert clustered.p_value > 3 * alone.p_value
    sums = (by_document / 4).reshape(20, 5).sum(axis=1)[:, None]
    assert clustered.p_value == pytest.approx(float(step_down(sums).alone[0]), abs=0.004)


def test_comparisons_that_nothing_is_known_of_have_an_answer_and_keep_their_families() -> None:
    table = metric_scores({"m": columns(20, 2), "other": columns(20, 2, 1)})
    wanted = [pair("absent"), pair("absent", metric="other", primary=False), pair("v1", metric="unknown"), pair("v7")]
    found = answers(table, wanted)
    assert {one.verdict for one in found.values()} == {"no question has a score under both"}
    assert [(found[one].family.name, found[one].p_value) for one in wanted[:2]] == [
        ("primary", None), ("secondary", None)
    ]  # fmt: skip


def random_scores(n: int, variants: int, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    difficulty = random.random(n)
    return {f"v{i}": np.clip(difficulty + 0.04 * i + random.normal(0, 0.2, n), 0, 1) for i in range(variants)}


def test_comparisons_are_over_the_questions_both_have() -> None:
    row = comparisons(scores({"base": [0.0, 0.0, math.nan, 1.0], "new": [1.0, math.nan, 1.0, 1.0]}), "base").iloc[0]
    assert (row["n"], row["difference"], row["wins"], row["ties"], row["losses"]) == (2, 0.5, 1, 1, 0)
    assert row["p_value"] == 1.0 and row["p_corrected"] is None


def test_verdicts_of_a_family() -> None:
    random = np.random.default_rng(0)
    base = random.uniform(0.4, 0.6, 60)
    columns = {"base": base, "good": base + random.uniform(0, 0.3, 60), "bad": base - random.uniform(0, 0.3, 60)}
    table = scores(columns | {"same": base, "noise": base + random.normal(0, 0.1, 60)})
    assert tuple(comparisons(table, "base").columns) == COMPARISON_COLUMNS
    found = comparisons(table, "base").set_index("variant_id")
    assert (found.loc["good", "verdict"], found.loc["bad", "verdict"]) == ("better", "worse")
    assert found.loc["same", "verdict"].startswith("no difference on any of the 60 questions")
    assert found.loc["noise", "verdict"].startswith("the data cannot tell: 60 questions could have shown a difference")
    assert found.loc["same", "p_corrected"] is None


def test_nothing_in_common() -> None:
    table = pd.concat([scores({"base": [1.0, math.nan], "new": [math.nan, 1.0]}), scores({"new": [1.0, 1.0]}, "other")])
    found = comparisons(table, "base")
    assert list(found["n"]) == [0, 0]
    assert set(found["verdict"]) == {"no question has a score under both"}
    assert found["p_corrected"].tolist() == [None, None]


def test_every_pair_on_request() -> None:
    table = scores(random_scores(30, 4))
    found = comparisons(table, "v2", pairs="all")
    pairs = [(row["variant_id"], row["against"]) for _, row in found.iterrows()]
    assert pairs == [("v0", "v2"), ("v1", "v2"), ("v3", "v2"), ("v1", "v0"), ("v3", "v0"), ("v3", "v1")]
    against_baseline = comparisons(table, "v2")
    assert list(against_baseline["difference"]) == list(found["difference"][:3])
    assert set(against_baseline["against"]) == {"v2"}


def test_effect_size_is_the_mean_in_standard_deviations() -> None:
    columns = random_scores(40, 2)
    row = comparisons(scores(columns), "v0").iloc[0]
    differences = columns["v1"] - columns["v0"]
    assert row["effect_size"] == pytest.approx(ttest_1samp(differences, 0).statistic / math.sqrt(40))
    assert comparisons(scores({"a": [0.5] * 5, "b": [0.7] * 5}), "a").iloc[0]["effect_size"] is None
    rounding = comparisons(scores({"a": [0.1, 0.3, 0.7, 0.2], "b": [0.3, 0.5, 0.9, 0.4]}), "a").iloc[0]
    assert rounding["effect_size"] is None and rounding["difference"] == pytest.approx(0.2)


def test_clusters_widen_the_interval_and_weaken_the_test() -> None:
    random = np.random.default_rng(1)
    by_document = np.repeat(random.normal(0.1, 0.2, 20), 5)
    table = scores({"a": np.zeros(100), "b": by_document + random.normal(0, 0.05, 100)})
    clusters = {f"q{i}": f"document {i // 5}" for i in range(100)}
    alone, clustered = (
        comparisons(table, "a").iloc[0],
        comparisons(table, "a", options=Options(clusters=clusters)).iloc[0],
    )
    assert clustered["high"] - clustered["low"] > 1.8 * (alone["high"] - alone["low"])
    assert clustered["p_value"] > 3 * alone["p_value"]
    assert clustered["difference"] == pytest.approx(alone["difference"])
    wide, narrow = summary(table, clusters=clusters).iloc[1], summary(table).iloc[1]
    assert wide["high"] - wide["low"] > 1.5 * (narrow["high"] - narrow["low"])


def test_clusters_of_one_change_nothing_and_a_single_cluster_says_so() -> None:
    table = scores(random_scores(25, 3))
    same = comparisons(table, "v0", options=Options(clusters={f"q{i}": i for i in range(20)}))  # 5 are on their own
    assert same.equals(comparisons(table, "v0"))
    row = comparisons(table, "v0", options=Options(clusters={f"q{i}": 0 for i in range(25)})).iloc[0]
    assert row["low"] is None and row["p_value"] == 1.0
    assert row["verdict"] == "the data cannot tell: only one cluster (25 questions) has scores under both"


def noise_with_floor(floor: float, n_questions: int) -> NoiseComponents:
    """Return noise of which the floor of a difference over `n_questions` is `floor`."""
    return NoiseComponents(0.0, n_questions * (floor / 1.959964) ** 2, None, n_questions, 2.0, 1.0)


def test_nothing_below_the_noise_floor_of_the_questions_of_the_pair_is_called_a_difference() -> None:
    below = "the data cannot tell: +0.015 is below the noise floor of 0.020"
    few = [0.52, 0.41] * 5 + [math.nan] * 30
    table = scores({"a": [0.5, 0.4] * 20, "b": few, "c": [0.52, 0.41] * 20})
    floors = {floor: Options(noise={"m": noise_with_floor(floor, 40)}) for floor in (0.01, 0.02)}
    assert list(comparisons(table, "a", options=floors[0.01])["verdict"]) == [below, "better"]
    assert comparisons(table, "a", options=floors[0.02])["verdict"][1] == below
    assert comparisons(table, "a")["verdict"][1] == "better"


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("clustered", [False, True])
def test_the_order_of_rows_changes_no_digit(seed: int, clustered: bool) -> None:
    columns = random_scores(40, 4)
    columns["v1"][:3] = np.nan
    table = pd.concat([scores(columns).assign(repeat=r, value=lambda t, r=r: t["value"] / (1 + r)) for r in range(3)])
    rows = np.random.default_rng(seed).permutation(len(table))
    clusters = {f"q{i}": i // 3 for i in range(40)} if clustered else None
    keys = ["variant_id", "metric"]
    for make in (
        lambda t: comparisons(t, "v0", options=Options(clusters=clusters)),
        lambda t: summary(t, clusters=clusters),
    ):
        ours, shuffled = (make(t).sort_values(keys).reset_index(drop=True) for t in (table, table.iloc[rows]))
        assert ours.equals(shuffled)


cells = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(cells, min_size=n, max_size=n), min_size=2, max_size=3)))
def test_any_scores_give_a_sentence_and_no_nan(rows: list[list[float | None]]) -> None:
    table = scores({f"v{i}": [math.nan if v is None else v for v in row] for i, row in enumerate(rows)})
    clusters = {f"q{i}": i // 2 for i in range(5)}
    words = ["variant_id", "metric", "verdict", "against", "doubt", "family"]
    for pairs, options in (("all", Options(clusters=clusters)), ("baseline", Options("bh"))):
        found = comparisons(table, "v0", pairs=pairs, options=options)  # type: ignore[arg-type]
        assert found["verdict"].map(bool).all()
        assert all(value is None or math.isfinite(value) for value in found.drop(columns=words).to_numpy().ravel())


@pytest.mark.slow
@pytest.mark.parametrize("test", ["fisher", "student"])
def test_agrees_with_ranx(test: str) -> None:
    ranx = pytest.importorskip("ranx")
    random = np.random.default_rng(5)
    n = 60
    qrels = ranx.Qrels({f"q{i}": {"d0": 1} for i in range(n)})
    ranks = {name: random.integers(0, 6, n) for name in ("v0", "v1")}
    ranks["v1"] = np.maximum(ranks["v1"] - 1, 0)
    runs = [
        ranx.Run({f"q{i}": {f"d{(d - ranks[name][i]) % 6}": 6.0 - d for d in range(6)} for i in range(n)}, name=name)
        for name in ranks
    ]
    report = ranx.compare(qrels, runs, ["mrr"], stat_test=test, n_permutations=20_000)
    theirs = report.comparisons["v0", "v1"]["mrr"]
    per_query = {
        name: [float(run.scores["mrr"][f"q{i}"]) for i in range(n)] for name, run in zip(ranks, runs, strict=True)
    }
    ours = comparisons(scores(per_query), "v0").iloc[0]
    assert ours["p_value"] == pytest.approx(float(theirs["p_value"]), abs=0.006)
    wins = report.win_tie_loss["v1", "v0"]["mrr"]
    assert (ours["wins"], ours["ties"], ours["losses"]) == (wins["W"], wins["T"], wins["L"])
