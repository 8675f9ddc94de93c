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
from rag_lab.statistics.per_question import exact_mean, frame, per_question

RANKING_COLUMNS = ("rank", "variant_id", "ranked_by", "mean", "scored", "failed", "asked")


def ranking(scores: pd.DataFrame, metric: str, lowest: float | None = 0.0) -> pd.DataFrame:
    """Return one row a variant of the table, best first.

    Columns:
        rank: from 1; equals share one
        variant_id
        ranked_by: the mean with `lowest` for everything that failed; None where `lowest` is, or nothing was asked
        mean: over the scored questions
        scored, failed, asked: questions; one that others were asked and this variant has no row for has failed, one
            to which the metric does not apply is not asked

    Args:
        scores: as for `summary`.
        metric: one in which more is better.
        lowest: the worst value the metric can take, or None where there is none.

    Raises:
        ConfigError: if a column of the table is missing, or a score lies below `lowest`.
    """
    questions = per_question(scores)
    variants = list(dict.fromkeys(scores["variant_id"]))
    ours = questions[questions["metric"] == metric]
    smallest = ours["smallest"].min()
    if lowest is not None and smallest < lowest:
        raise ConfigError(f"{metric} has a score of {smallest:g}, below {lowest:g}; give its worst value, or None.")
    everything = set(ours["question_id"])
    rows = [_row(variant, ours[ours["variant_id"] == variant], everything, lowest) for variant in variants]
    order = sorted(range(len(rows)), key=lambda index: (_key(rows[index]), index))
    ranks: list[int] = []
    for place, index in enumerate(order):
        equal = place > 0 and _key(rows[index]) == _key(rows[order[place - 1]])
        ranks.append(ranks[-1] if equal else place + 1)
    return frame([(rank, *rows[index]) for rank, index in zip(ranks, order, strict=True)], RANKING_COLUMNS)


def _row(variant: Any, cell: pd.DataFrame, everything: set[Any], lowest: float | None) -> tuple[Any, ...]:
    without_row = len(everything - set(cell["question_id"]))
    scored, failed = int(cell["scored"].sum()), int((cell["failed"] & ~cell["scored"]).sum()) + without_row
    mean = exact_mean(cell["mean"].dropna()) if scored else None
    by = None
    if lowest is not None and scored + failed:
        # `worst` holds 0 for each failed repeat; the share of failed repeats is what moves it to `lowest`.
        asked = cell[cell["scored"] | cell["failed"]]
        share = 1 - (asked["best"] - asked["worst"])
        by = (math.fsum(asked["worst"] + (1 - share) * lowest) + without_row * lowest) / (scored + failed)
    return (variant, by, mean, scored, failed, scored + failed)


def _key(row: tuple[Any, ...]) -> tuple[float, ...]:
    """Return what is sorted by, smallest first: nothing that grows when a question fails may improve it."""
    _, by, mean, scored, failed, _ = row
    if by is not None:
        return (-by, failed)
    return (-scored, -mean if mean is not None else 0.0)
