"""What each module adds, alone and beside the others: main effects, interactions, conditional effects, toggles.

Every effect is a contrast of variants (see `contrasts`), so it is one number a question, with the question as its own
block; its interval and its test are those of a paired difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from rag_lab.errors import ConfigError
from rag_lab.statistics.effects.contrasts import Contrast
from rag_lab.statistics.effects.factors import Factors, read_factors
from rag_lab.statistics.effects.nested_contrasts import contrasts_of
from rag_lab.statistics.hypotheses import Hypothesis
from rag_lab.statistics.per_question import frame
from rag_lab.statistics.verdict import Answer

EFFECT_COLUMNS = (
    *("metric", "kind", "factor", "level", "first", "other", "other_level", "other_first"),
    *("n", "effect", "low", "high", "p_value", "p_corrected", "effect_size", "verdict", "doubt"),
    *("family", "smallest_difference"),
)
PRIMARY_KINDS = ("main", "interaction")  # in the metric that decides


@dataclass(frozen=True, slots=True)
class Effect:
    """A contrast of the design in a metric."""

    metric: Any
    contrast: Contrast
    is_primary: bool

    @property
    def hypothesis(self) -> Hypothesis:
        """That the module adds nothing."""
        return Hypothesis(self.metric, tuple(self.contrast.weights.items()), is_primary=self.is_primary)


def design_effects(scores: pd.DataFrame, factors: Factors, primary: Any = None) -> list[Effect]:
    """Return the effects that a design can show in every metric; `primary` decides, the first metric where None."""
    metrics = list(dict.fromkeys(scores["metric"]))
    first = metrics[0] if primary is None and metrics else primary
    return [
        Effect(metric, contrast, metric == first and contrast.kind in PRIMARY_KINDS)
        for metric in metrics
        for contrast in contrasts_of(factors)
    ]


def effects_table(wanted: Sequence[Effect], found: Mapping[Hypothesis, Answer]) -> pd.DataFrame:
    """Return one row an effect, in order.

    Columns:
        metric
        kind: main, interaction, conditional (of a full grid), or toggle
        factor, level, first: the effect is that of `level` against `first`
        other, other_level, other_first: of an interaction, the factor beside which the effect changes, from
            `other_first` to `other_level`; of a conditional effect, the level that the other factor has; else empty
        n: questions that all variants of the design have a score for (of a toggle: variant and baseline)
        effect, low, high: mean over questions, with its interval
        p_value, p_corrected, effect_size, verdict, doubt, family, smallest_difference: as in `differences_table`
    """
    return frame([_row(one, found[one.hypothesis]) for one in wanted], EFFECT_COLUMNS)


def _row(effect: Effect, answer: Answer) -> tuple[Any, ...]:
    c, d = effect.contrast, answer.difference
    what = (effect.metric, c.kind, c.factor, c.level, c.first, c.other, c.other_level, c.other_first)
    tested = (answer.p_value, answer.p_corrected, d.effect_size, answer.verdict, answer.doubt)
    return (*what, d.n, d.mean, d.low, d.high, *tested, answer.family.name, answer.smallest_difference)


def design(
    scores: pd.DataFrame,
    values: Mapping[Any, Mapping[str, Any]],
    baseline: Any,
    *,
    planned: str = "",
    same: Iterable[tuple[Mapping[str, Any], Any]] = (),
) -> Factors:
    """Return the design made by the variants that have any score; see `read_factors`.

    Raises:
        ConfigError: if it cannot be read; the reason is said.
    """
    present = set(scores.loc[scores["status"] == "scored", "variant_id"].unique()) | {baseline}
    try:
        known = {variant: one for variant, one in values.items() if variant in present}
        return read_factors(known, baseline, planned=planned, same=same)
    except ValueError as error:
        raise ConfigError(f"No effects can be computed: {error}.") from None
