"""An order of the variants in which no variant rises because something failed.

No order by means over scored questions can promise that: a variant that fails on its hardest questions raises its own
mean, and where only the questions that all variants have scored are counted, it removes from the comparison just those
on which it was beaten. So a failed question counts here as the worst score the metric can take: it is then worth no
more than any score it replaced, and the others keep theirs. Where a variant has no failures, that is its plain mean.

A metric without a worst value cannot be counted so. There, a variant with more scored questions stands before one with
fewer, and means decide only between equals.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from rag_lab.errors import ConfigError
from rag_lab.statistics.per_question import exact_mean, frame, per_question, with_failures_at
from rag_lab.statistics.scales import SHARE, Scale, scales_of

RANKING_COLUMNS = ("rank", "variant_id", "ranked_by", "mean", "scored", "failed", "asked")


def ranking(scores: pd.DataFrame, metric: str, scale: Scale = SHARE) -> pd.DataFrame:
    """Return one row a variant of the table, best first.

    Columns:
        rank: from 1; equals share one
        variant_id
        ranked_by: the mean with the worst value for everything that failed; None without one, or if nothing was asked
        mean: over the scored questions
        scored, failed, asked: questions; one that others were asked and this variant has no row for has failed, one
            to which the metric does not apply is not asked

    Args:
        scores: as for `summary`.
        metric: which decides.
        scale: its worst value, and whether more is better.

    Raises:
        ConfigError: if a column of the table is missing, or a score lies beyond the scale.
    """
    ours = per_question(scores, [metric])
    variants = list(dict.fromkeys(scores["variant_id"]))
    is_bounded = scale.low is not None or scale.high is not None
    if is_bounded and scales_of(scores, {metric: scale}).get(metric, scale) != scale:
        raise ConfigError(f"{metric} has scores beyond its range; give a scale that holds them, or `UNKNOWN`.")
    everything = set(ours["question_id"])
    rows = [_row(variant, ours[ours["variant_id"] == variant], everything, scale.worst) for variant in variants]
    order = sorted(range(len(rows)), key=lambda index: (_key(rows[index], scale), index))
    ranks: list[int] = []
    for place, index in enumerate(order):
        equal = place > 0 and _key(rows[index], scale) == _key(rows[order[place - 1]], scale)
        ranks.append(ranks[-1] if equal else place + 1)
    return frame([(rank, *rows[index]) for rank, index in zip(ranks, order, strict=True)], RANKING_COLUMNS)


def _row(variant: Any, cell: pd.DataFrame, everything: set[Any], worst: float | None) -> tuple[Any, ...]:
    without_row = len(everything - set(cell["question_id"]))
    scored, failed = int(cell["scored"].sum()), int((cell["failed"] & ~cell["scored"]).sum()) + without_row
    mean = exact_mean(cell["mean"].dropna()) if scored else None
    by = None
    if worst is not None and scored + failed:
        asked = cell[cell["scored"] | cell["failed"]]
        by = (math.fsum(with_failures_at(asked, worst)) + without_row * worst) / (scored + failed)
    return (variant, by, mean, scored, failed, scored + failed)


def _key(row: tuple[Any, ...], scale: Scale) -> tuple[float, ...]:
    """Return what is sorted by, smallest first: nothing that grows when a question fails may improve it."""
    _, by, mean, scored, failed, _ = row
    if by is not None:
        return (-scale.sign * by, failed)
    return (-scored, -scale.sign * mean if mean is not None else 0.0)
