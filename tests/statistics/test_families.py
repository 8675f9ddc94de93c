"""One answer a comparison, in two families; failures cannot make a finding."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from factories import score_table

from rag_lab.statistics.families import Hypothesis, Options, answers
from rag_lab.statistics.randomization import step_down
from rag_lab.statistics.scales import Scale

FAILED = float("nan")


def scores(metrics: dict[str, dict[str, Any]]) -> pd.DataFrame:
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
    alone = answers(scores({"m": found}), wanted)
    both = answers(scores({"m": found, "other": columns(60, 5, 1)}), [*wanted, *others])
    assert [both[one].p_corrected for one in wanted] == [alone[one].p_corrected for one in wanted]
    by_hand = step_down(np.stack([found[f"v{i}"] - found["v0"] for i in range(1, 5)], axis=1))
    assert [both[one].p_corrected for one in wanted] == pytest.approx(list(by_hand.adjusted), abs=0.004)
    assert {both[one].family.name for one in others} == {"secondary"}
    assert {both[one].family.n_tests for one in (*wanted, *others)} == {4}


def test_strict_families_share_five_percent() -> None:
    wanted = [pair("v1"), pair("v1", metric="other", primary=False)]
    table = scores({"m": columns(60, 2), "other": columns(60, 2, 1)})
    found = answers(table, wanted, Options(strict=True))
    assert [found[one].family.alpha for one in wanted] == [0.04, 0.01]


def test_one_comparison_has_one_answer_whatever_it_is_called() -> None:
    table = scores({"m": columns(60, 3, lift=0.05)})
    first, mirrored = pair("v1"), pair("v0", "v1", primary=False)
    with_third = Hypothesis("m", (("v1", 1.0), ("v0", -1.0), ("v2", 0.0)))  # the same questions: v2 has all scores
    of_all = Hypothesis("m", (("v1", 1.0), ("v0", -1.0)), frozenset(f"q{i}" for i in range(60)))
    found = answers(table, [first, mirrored, with_third, of_all])
    assert {found[one].p_corrected for one in found} == {found[first].p_corrected}
    assert {found[one].family for one in found} == {found[first].family}
    assert found[first].family.n_tests == 1
    assert found[mirrored].difference.mean == -(found[first].difference.mean or 0)


def test_on_other_questions_it_is_another_comparison() -> None:
    table = scores({"m": columns(60, 2, lift=0.05)})
    half = Hypothesis("m", (("v1", 1.0), ("v0", -1.0)), frozenset(f"q{i}" for i in range(30)))
    found = answers(table, [pair("v1"), half])
    assert (found[half].difference.n, found[half].family.name) == (30, "secondary")


def test_what_cannot_be_significant_leaves_the_family() -> None:
    found = columns(60, 3, lift=0.05)
    few = found["v0"].copy()
    few[:5] += 0.3
    table = scores({"m": found | {"few": few, "same": found["v0"]}})
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
    table = scores({"m": {"v0": base, "v1": hidden}})
    one = answers(table, [pair("v1")])[pair("v1")]
    assert one.difference.mean is not None and one.difference.mean > 0.4
    assert one.p_corrected is not None and one.p_corrected < 0.01
    assert one.verdict.startswith("the data cannot tell: depends on failures: with each at the worst value")


def test_a_metric_without_a_worst_value_cannot_excuse_failures() -> None:
    found = columns(60, 2, lift=0.2)
    found["v1"][0] = FAILED
    table = scores({"m": found})
    assert answers(table, [pair("v1")])[pair("v1")].verdict == "better"
    unbounded = answers(table.assign(value=table["value"] * 9), [pair("v1")], Options(scales={"m": Scale(None, None)}))
    assert "the metric has no worst value" in unbounded[pair("v1")].verdict


def test_clusters_flip_together() -> None:
    random = np.random.default_rng(1)
    by_document = np.repeat(random.normal(0.1, 0.2, 20), 5)
    table = scores({"m": {"v0": np.full(100, 0.5), "v1": 0.5 + by_document / 4}})
    clusters = {f"q{i}": i // 5 for i in range(100)}
    alone = answers(table, [pair("v1")])[pair("v1")]
    clustered = answers(table, [pair("v1")], Options(clusters=clusters))[pair("v1")]
    assert clustered.p_value is not None and alone.p_value is not None
    assert clustered.p_value > 3 * alone.p_value
    sums = (by_document / 4).reshape(20, 5).sum(axis=1)[:, None]
    assert clustered.p_value == pytest.approx(float(step_down(sums).alone[0]), abs=0.004)


def test_comparisons_that_nothing_is_known_of_have_an_answer_and_keep_their_families() -> None:
    table = scores({"m": columns(20, 2), "other": columns(20, 2, 1)})
    wanted = [pair("absent"), pair("absent", metric="other", primary=False), pair("v1", metric="unknown"), pair("v7")]
    found = answers(table, wanted)
    assert {one.verdict for one in found.values()} == {"no question has a score under both"}
    assert [(found[one].family.name, found[one].p_value) for one in wanted[:2]] == [
        ("primary", None), ("secondary", None)
    ]  # fmt: skip
