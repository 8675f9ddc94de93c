"""Variants against each other, on the questions that both have a score for; None where a number is unknown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import pandas as pd

from rag_lab.errors import ConfigError, unknown_name
from rag_lab.statistics.families import Hypothesis, Options, answers
from rag_lab.statistics.per_question import frame
from rag_lab.statistics.verdict import Answer

COMPARISON_COLUMNS = (
    *("variant_id", "metric", "n", "difference", "low", "high", "p_value", "p_corrected"),
    *("wins", "ties", "losses", "verdict", "against", "effect_size", "doubt", "family", "smallest_difference"),
)
Pairs = Literal["baseline", "all"]


@dataclass(frozen=True, slots=True)
class Pair:
    """A variant and what it is compared with, in a metric; `withheld` says why it is not, where it is not."""

    variant_id: Any
    metric: Any
    against: Any
    is_primary: bool = False
    withheld: str = ""

    @property
    def hypothesis(self) -> Hypothesis:
        """That both score alike."""
        return Hypothesis.of_pair(self.metric, self.variant_id, self.against, self.is_primary)


def comparisons(
    scores: pd.DataFrame, baseline: Any, *, pairs: Pairs = "baseline", options: Options | None = None
) -> pd.DataFrame:
    """Return `differences_table` of all variants against the baseline, or of all pairs; the first metric is primary."""
    variants = list(dict.fromkeys(scores["variant_id"])) if "variant_id" in scores else []
    if baseline not in variants:
        raise ConfigError(unknown_name("baseline variant", baseline, map(str, variants)))
    if pairs not in ("baseline", "all"):
        raise ConfigError(unknown_name("choice of pairs", pairs, ("baseline", "all")))
    wanted = score_pairs(scores, pairs_among([baseline, *(one for one in variants if one != baseline)], pairs))
    return differences_table(wanted, answers(scores, [one.hypothesis for one in wanted], options))


def pairs_among(variants: Sequence[Any], pairs: Pairs) -> list[tuple[Any, Any]]:
    """Return (variant, against): every other variant against the first, or each against those before it."""
    if pairs == "baseline":
        return [(variant, variants[0]) for variant in variants[1:]]
    return [(later, earlier) for earlier, later in combinations(variants, 2)]


def score_pairs(scores: pd.DataFrame, pairs: Sequence[tuple[Any, Any]], primary: Any = None) -> list[Pair]:
    """Return each pair in each metric that its variant has rows for; `primary` decides, the first metric where None."""
    metrics = list(dict.fromkeys(scores["metric"]))
    first = metrics[0] if primary is None and metrics else primary
    there = set(zip(scores["variant_id"], scores["metric"], strict=True))
    return [
        Pair(variant, metric, against, metric == first)
        for variant, against in pairs
        for metric in metrics
        if (variant, metric) in there
    ]


def differences_table(pairs: Sequence[Pair], found: Mapping[Hypothesis, Answer]) -> pd.DataFrame:
    """Return one row a pair, in order.

    Columns:
        n: questions that both the variant and `against` have a score for; all that follows is over these
        difference, low, high: mean of variant minus `against`, and its interval
        p_value: two-sided sign-flip test of this pair alone
        p_corrected: within its family; None where so few questions differ that it cannot be significant
        wins, ties, losses: questions on which the variant is better, equal, worse
        verdict: `better`, `worse`, or a sentence that says why neither (see `verdict.Answer`), or why nothing was
            compared
        effect_size: Cohen's d_z, the difference / the standard deviation of the differences; None without spread
        doubt: why what looks like a finding is none, else ""
        family: `primary` or `secondary`
        smallest_difference: that this comparison could have shown with power 0.8; None where that is unknown
    """
    rows: list[tuple[Any, ...]] = []
    for pair in pairs:
        key = (pair.variant_id, pair.metric)
        if pair.withheld:
            family = "primary" if pair.is_primary else "secondary"
            nothing = (0, None, None, None, None, None, 0, 0, 0)
            rows.append((*key, *nothing, pair.withheld, pair.against, None, "", family, None))
            continue
        answer = found[pair.hypothesis]
        d = answer.difference
        wins, losses = (d.wins, d.losses) if answer.higher_is_better else (d.losses, d.wins)
        numbers = (d.n, d.mean, d.low, d.high, answer.p_value, answer.p_corrected, wins, d.ties, losses)
        words = (answer.verdict, pair.against, d.effect_size, answer.doubt, answer.family.name)
        rows.append((*key, *numbers, *words, answer.smallest_difference))
    return frame(rows, COMPARISON_COLUMNS)
