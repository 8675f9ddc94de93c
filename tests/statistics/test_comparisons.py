"""Comparisons on request: all pairs, other corrections, clusters, noise floors; and agreement with other packages."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp
from statsmodels.stats.multitest import multipletests

from rag_lab.errors import ConfigError
from rag_lab.statistics.complete_cases import comparisons, summary
from rag_lab.statistics.corrections import benjamini_hochberg, corrected
from rag_lab.statistics.noise_components import NoiseComponents

probabilities = st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=1, max_size=12)


def scores(columns: dict[str, Any], metric: str = "m") -> pd.DataFrame:
    parts = [
        pd.DataFrame(
            {
                **{"variant_id": name, "question_id": [f"q{i}" for i in range(len(values))], "metric": metric},
                **{"value": values, "status": np.where(np.isnan(values), "failed", "scored"), "reason": ""},
            }
        )
        for name, values in ((name, np.array(values, dtype=float)) for name, values in columns.items())
    ]
    return pd.concat(parts, ignore_index=True)


def random_scores(n: int, variants: int, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    difficulty = random.random(n)
    return {f"v{i}": np.clip(difficulty + 0.04 * i + random.normal(0, 0.2, n), 0, 1) for i in range(variants)}


@settings(max_examples=50, deadline=None)
@given(probabilities)
def test_benjamini_hochberg_is_statsmodels(p_values: list[float | None]) -> None:
    found = benjamini_hochberg(p_values)
    tested = [p for p in p_values if p is not None]
    assert [p is None for p in found] == [p is None for p in p_values]
    if tested:
        theirs = multipletests(tested, method="fdr_bh")[1]
        assert [p for p in found if p is not None] == pytest.approx(list(theirs))


def test_corrections_by_name() -> None:
    assert corrected([0.01, 0.02, None], "none") == [0.01, 0.02, None]
    assert corrected([0.01, 0.02], "holm") == [0.02, 0.02]
    assert corrected([0.01, 0.04], "bh") == [0.02, 0.04]
    with pytest.raises(ConfigError, match="did you mean 'holm'"):
        corrected([0.1], "hlm")  # type: ignore[arg-type]


def test_every_pair_on_request() -> None:
    table = scores(random_scores(30, 4))
    found = comparisons(table, "v2", pairs="all")
    pairs = [(row["variant_id"], row["against"]) for _, row in found.iterrows()]
    assert pairs == [("v0", "v2"), ("v1", "v2"), ("v3", "v2"), ("v1", "v0"), ("v3", "v0"), ("v3", "v1")]
    against_baseline = comparisons(table, "v2")
    assert list(against_baseline["difference"]) == list(found["difference"][:3])
    assert set(against_baseline["against"]) == {"v2"}
    with pytest.raises(ConfigError, match="choice of pairs"):
        comparisons(table, "v2", pairs="some")  # type: ignore[arg-type]


def test_effect_size_is_the_mean_in_standard_deviations() -> None:
    columns = random_scores(40, 2)
    row = comparisons(scores(columns), "v0").iloc[0]
    differences = columns["v1"] - columns["v0"]
    assert row["effect_size"] == pytest.approx(ttest_1samp(differences, 0).statistic / math.sqrt(40))
    assert comparisons(scores({"a": [0.5] * 5, "b": [0.7] * 5}), "a").iloc[0]["effect_size"] is None


def test_clusters_widen_the_interval_and_weaken_the_test() -> None:
    random = np.random.default_rng(1)
    by_document = np.repeat(random.normal(0.1, 0.2, 20), 5)
    table = scores({"a": np.zeros(100), "b": by_document + random.normal(0, 0.05, 100)})
    clusters = {f"q{i}": f"document {i // 5}" for i in range(100)}
    alone, clustered = comparisons(table, "a").iloc[0], comparisons(table, "a", clusters=clusters).iloc[0]
    assert clustered["high"] - clustered["low"] > 1.8 * (alone["high"] - alone["low"])
    assert clustered["p_value"] > 3 * alone["p_value"]
    assert clustered["difference"] == pytest.approx(alone["difference"])
    wide, narrow = summary(table, clusters=clusters).iloc[1], summary(table).iloc[1]
    assert wide["high"] - wide["low"] > 1.5 * (narrow["high"] - narrow["low"])


def test_clusters_of_one_change_nothing() -> None:
    table = scores(random_scores(25, 3))
    same = comparisons(table, "v0", clusters={f"q{i}": i for i in range(20)})  # the other five are on their own
    assert same.equals(comparisons(table, "v0"))


def test_a_single_cluster_says_so() -> None:
    row = comparisons(scores(random_scores(25, 2)), "v0", clusters={f"q{i}": 0 for i in range(25)}).iloc[0]
    assert row["low"] is None and row["p_value"] == 1.0
    assert row["verdict"] == "the data cannot tell: only one cluster (25 questions) has scores under both"


def noise_with_floor(floor: float, n_questions: int) -> NoiseComponents:
    """Return noise of which the floor of a difference over `n_questions` is `floor`."""
    return NoiseComponents(0.0, n_questions * (floor / 1.959964) ** 2, None, n_questions, 2.0, 1.0)


def test_nothing_below_the_noise_floor_is_called_a_difference() -> None:
    table = scores({"a": [0.5, 0.4] * 20, "b": [0.52, 0.41] * 20})
    assert comparisons(table, "a").iloc[0]["verdict"] == "better"
    said = comparisons(table, "a", noise={"m": noise_with_floor(0.02, 40)}).iloc[0]["verdict"]
    assert said == "the data cannot tell: a difference of +0.015 is below the noise floor of 0.020"


def test_the_noise_floor_is_that_of_the_questions_of_the_pair() -> None:
    few = [0.52, 0.41] * 5 + [math.nan] * 30
    table = scores({"a": [0.5, 0.4] * 20, "b": few, "c": [0.52, 0.41] * 20})
    said = list(comparisons(table, "a", noise={"m": noise_with_floor(0.01, 40)})["verdict"])
    assert said == ["the data cannot tell: a difference of +0.015 is below the noise floor of 0.020", "better"]


def test_silly_numbers_of_questions_are_not_given() -> None:
    values = np.random.default_rng(0).normal(0, 1, 50)
    row = comparisons(scores({"a": np.zeros(50), "b": values - values.mean() + 1e-4}), "a").iloc[0]
    assert row["verdict"].startswith("the data cannot tell: more than 100,000 questions would settle")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("clustered", [False, True])
def test_the_order_of_rows_changes_no_digit(seed: int, clustered: bool) -> None:
    columns = random_scores(40, 4)
    columns["v1"][:3] = np.nan
    table = pd.concat([scores(columns).assign(repeat=r, value=lambda t, r=r: t["value"] / (1 + r)) for r in range(3)])
    rows = np.random.default_rng(seed).permutation(len(table))
    clusters = {f"q{i}": i // 3 for i in range(40)} if clustered else None
    keys = ["variant_id", "metric"]
    for make in (lambda t: comparisons(t, "v0", clusters=clusters), lambda t: summary(t, clusters=clusters)):
        ours, shuffled = (make(t).sort_values(keys).reset_index(drop=True) for t in (table, table.iloc[rows]))
        assert ours.equals(shuffled)


cells = st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(cells, min_size=n, max_size=n), min_size=2, max_size=3)))
def test_any_scores_give_a_sentence_and_no_nan(rows: list[list[float | None]]) -> None:
    table = scores({f"v{i}": [math.nan if v is None else v for v in row] for i, row in enumerate(rows)})
    clusters = {f"q{i}": i // 2 for i in range(5)}
    for found in (comparisons(table, "v0", pairs="all", clusters=clusters), comparisons(table, "v0", correction="bh")):
        assert found["verdict"].map(bool).all()
        for value in found.drop(columns=["variant_id", "metric", "verdict", "against", "doubt"]).to_numpy().ravel():
            assert value is None or math.isfinite(value)


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
