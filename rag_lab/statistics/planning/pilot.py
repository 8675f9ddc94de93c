"""The differences that an earlier run, or a pilot, saw: what a plan knows of the spread."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from rag_lab._kit.wording import counted
from rag_lab.statistics.interval_ends import ENOUGH_APART
from rag_lab.statistics.per_question import Clusters, unit_places, with_failures_at
from rag_lab.statistics.randomization import smallest_n
from rag_lab.statistics.resampled_units import Units
from rag_lab.statistics.scales import Scale
from rag_lab.statistics.verdict import ALPHA

LEAST_QUESTIONS = 40  # with fewer the spread is anybody's guess
LEAST_APART = smallest_n(ALPHA)  # units that differ; with fewer no test finds anything

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pilot:
    """The differences of the contrasts of one metric, more being better, summed in each unit.

    keys: of the contrasts.
    sums, counts: (units, contrasts); 0 where a question has no difference. The units are those of all metrics.
    reach: (contrasts,) the largest possible difference of a question; None where the metric has no such bound.
    """

    keys: tuple[Any, ...]
    sums: Floats
    counts: Floats
    reach: Floats | None

    def column(self, place: int) -> Units:
        """Return the units of one contrast that have a difference."""
        has = self.counts[:, place] > 0
        return Units(self.sums[has, place], self.counts[has, place])

    def interval_reach(self, place: int, n_units: int) -> float:
        """Return how far the interval of so many units reaches where few of them differ, which guards it; else 0."""
        column = self.column(place)
        n, apart = len(column.sums), int(np.count_nonzero(column.sums))
        if self.reach is None or apart * n_units >= ENOUGH_APART * n or n_units < 2:
            return 0.0
        one_more = float(self.reach[place]) / (n_units + 1)
        error = (column.standard_error or 0.0) * math.sqrt(n / n_units)
        return one_more + float(stdtrit(n_units, 1 - ALPHA / 2)) * math.hypot(error, one_more)

    @property
    def measured(self) -> npt.NDArray[np.bool_]:
        """Which units have a difference in any contrast."""
        return np.asarray((self.counts > 0).any(axis=1))

    def problem(self, place: int, unit: str = "question") -> str:
        """Return why nothing can be planned for a contrast, or ''; `unit` is what the units are called."""
        column = self.column(place)
        n, apart = column.n, int(np.count_nonzero(column.sums))
        if n < LEAST_QUESTIONS:
            return f"{counted(n, 'question')} {'was' if n == 1 else 'were'} compared, and it takes {LEAST_QUESTIONS}"
        if apart < LEAST_APART:
            some = (
                f"only {apart} of {counted(len(column.sums), unit)}" if apart else f"none of {len(column.sums)} {unit}s"
            )
            return f"{some} differ{'s' if apart < 2 else ''}, too few to know how large differences become"
        return ""


def pilot_of(
    questions: pd.DataFrame,
    metric: Any,
    contrasts: Mapping[Any, Mapping[Any, float]],
    scale: Scale,
    clusters: Clusters | None = None,
) -> Pilot:
    """Return the differences of a metric.

    Args:
        questions: as `per_question` returns them.
        metric: of which.
        contrasts: key to weights of variants that add up to zero.
        scale: of the metric; failures count at its ends, as in `non_inferiority`, or not at all where it has none.
        clusters: question_id to cluster; each is one unit.
    """
    ours = questions[questions["metric"] == metric]
    places = unit_places(questions["question_id"], clusters)
    everybody, unit = list(places), np.array(list(places.values()), dtype=np.intp)
    sums, counts = (np.zeros((len(set(places.values())), len(contrasts))) for _ in range(2))
    for column, weights in enumerate(contrasts.values()):
        values = _differences(ours, weights, scale).reindex(everybody).to_numpy(dtype=np.float64)
        np.add.at(sums[:, column], unit, np.nan_to_num(values))
        np.add.at(counts[:, column], unit, np.isfinite(values))
    weights_up = [sum(weight for weight in weights.values() if weight > 0) for weights in contrasts.values()]
    reach = None if scale.width is None else np.array(weights_up, dtype=np.float64) * scale.width
    return Pilot(tuple(contrasts), sums, counts, reach)


def _differences(ours: pd.DataFrame, weights: Mapping[Any, float], scale: Scale) -> pd.Series[float]:
    """Return the weighted sum of each question that all variants have, more being better."""
    used = {variant: weight for variant, weight in weights.items() if weight}
    total: pd.Series[float] | None = None
    for variant, weight in used.items():
        rows = ours[ours["variant_id"] == variant].set_index("question_id")
        value = with_failures_at(rows, scale.worst if weight > 0 else scale.best)
        part = value.astype(float) * (weight * scale.sign)
        total = part if total is None else total.add(part)
    return pd.Series(dtype=float) if total is None else total
