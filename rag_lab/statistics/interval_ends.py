"""The ends of an interval of a mean: by resampling, by Student's t, and what one more unit could make of them.

Scores of one run and another are mostly the same, and a change that strikes one question of a hundred with full force
may have struck none of those that were asked: what was seen has then no spread, or too little, and an interval that is
made of nothing else is too narrow. One unit that was not seen, appended at the end of the range of the metric, says
what could have been missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scipy.special import stdtrit

from rag_lab.statistics.bootstrap import bca_bounds, expanded_percentile_bounds
from rag_lab.statistics.resampled_units import Units

FEW_VALUES, FEW_CLUSTERS = 10, 8  # with fewer, most resamples would repeat one or two
ENOUGH_APART = 30  # units that differ: with fewer, what was not seen may outweigh what was

Bounds = tuple[float, float, bool]
Resampled = Callable[[Sequence[Units], float, int], list[Bounds]]


def usual_bounds(columns: Sequence[Units], confidence: float, seed: int, resampled: Resampled) -> dict[bytes, Bounds]:
    """Return low, high, and whether the method is the one that was meant, by the key of each column that has any.

    Each content is computed once, in an order of their own: equal columns get equal results, and the last digit does
    not depend on the order of the columns either.

    Args:
        columns: those of fewer than two units have no interval; Student's have fewer than 10 values or 8 clusters.
        confidence: of the intervals.
        seed: of the resamples.
        resampled: `bca` or `percentile`.

    Raises:
        ValueError: if `confidence` is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    distinct = {column.key: column for column in columns if len(column.sums) > 1}
    many = [distinct[key] for key in sorted(distinct) if not _are_few(distinct[key])]
    found = dict(zip([column.key for column in many], resampled(many, confidence, seed) if many else [], strict=True))
    few = {key: (*student_bounds(column, confidence), True) for key, column in distinct.items() if _are_few(column)}
    return found | few


def bca(columns: Sequence[Units], confidence: float, seed: int) -> list[Bounds]:
    """Return the BCa interval of each column; where it is undefined a percentile interval, and False."""
    low, high, defined = bca_bounds(columns, confidence, seed)
    return list(zip(low.tolist(), high.tolist(), defined.tolist(), strict=True))


def percentile(columns: Sequence[Units], confidence: float, seed: int) -> list[Bounds]:
    """Return the expanded percentile interval of each column."""
    low, high = expanded_percentile_bounds(columns, confidence, seed)
    return [(*ends, True) for ends in zip(low.tolist(), high.tolist(), strict=True)]


def student_bounds(column: Units, confidence: float) -> tuple[float, float]:
    """Return the interval by Student's t, with the standard error and the degrees of freedom that `Units` defines.

    Args:
        column: at least 2 units.
        confidence: between 0 and 1.
    """
    reach = float(stdtrit(column.degrees_of_freedom, (1 + confidence) / 2)) * (column.standard_error or 0.0)
    return column.mean - reach, column.mean + reach


def guarded_bounds(
    column: Units, confidence: float, lowest: float | None, highest: float | None
) -> tuple[float, float]:
    """Return the lower end of Student's interval with one more unit at `lowest`, and the upper one with `highest`.

    An end of the range that is not known guards nothing: there the mean itself stands.
    """
    low = high = column.mean
    if lowest is not None:
        low, _ = student_bounds(column.with_one_more(lowest), confidence)
    if highest is not None:
        _, high = student_bounds(column.with_one_more(highest), confidence)
    return low, high


def _are_few(column: Units) -> bool:
    return len(column.sums) < (FEW_VALUES if len(column.sums) == column.n else FEW_CLUSTERS)
