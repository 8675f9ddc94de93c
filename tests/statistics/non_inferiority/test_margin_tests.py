from typing import Any

import numpy as np
import pandas as pd
import pytest
from factories import score_table
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from rag_lab.errors import ConfigError
from rag_lab.statistics.non_inferiority.margin_tests import not_worse, not_worse_than_best, p_not_worse, pairs
from rag_lab.statistics.randomization import hommel
from rag_lab.statistics.scales import Scale

M = "retrieval.ndcg@5"


def table(variants: dict[str, list[float | None | str]]) -> pd.DataFrame:
    return score_table(variants, M).assign(repeat=0)


def one(scores: pd.DataFrame, margin: float = 0.05, **given: Any) -> dict[Any, Any]:
    (row,) = not_worse(scores, pairs([("b", "a")]), {M: margin}, **given).to_dict("records")
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
    found = not_worse(scores, pairs([("b", "a"), ("c", "a"), ("d", "a")]), {M: 0.05})
    assert list(found["p_corrected"]) == pytest.approx(hommel(list(found["p_value"])))
    assert list(found["contrast"]) == [("b", "a"), ("c", "a"), ("d", "a")]


def test_the_best_is_each_of_the_others() -> None:
    random = np.random.default_rng(2)
    best = random.uniform(0.4, 0.6, 400)
    scores = table({"a": best.tolist(), "b": (best - 0.01).tolist(), "c": (best - 0.2).tolist()})
    found = not_worse_than_best(scores, ["a", "b", "c"], {M: 0.05}).set_index("variant_id")
    assert found["is_not_worse"].to_dict() == {"a": True, "b": True, "c": False}
    assert found.loc["b", "against"] == "a" and found.loc["c", "against"] == "a" and found.loc["a", "against"] == "b"
    alone = not_worse(scores, pairs([("b", "a")]), {M: 0.05})["p_value"][0]
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
