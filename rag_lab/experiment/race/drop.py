"""Who stays in a race: the first by the mean in the deciding metric, what failed counted as its worst value.

Sequential halving: Karnin, Koren and Somekh (2013), "Almost Optimal Exploration in Multi-Armed Bandits", section 3;
here the questions of earlier rounds count on, since they are paid for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from rag_lab.runs.race_record import ClosestCall, Standing
from rag_lab.statistics.per_question import per_question, with_failures_at
from rag_lab.statistics.scales import Scale, scales_of
from rag_lab.statistics.variant_order import ranking


def standings(
    scores: pd.DataFrame, metric: str, scale: Scale, labels: Mapping[str, str], baseline: str, n_kept: int
) -> tuple[Standing, ...]:
    """Return how the variants of a round stand, best first, and which `n_kept` beside the baseline stay.

    Of variants with equal means the earlier in `labels` (variant to label, in the order of the plan) stays. One without
    scores stands last and does not stay, so that fewer may.
    """
    rows = ranking(scores, metric, _held(scores, metric, scale)).to_dict("records")
    ranked = {str(row["variant_id"]): row for row in rows if row["scored"] + row["failed"]}
    in_order = sorted((name for name in labels if name in ranked), key=lambda name: int(ranked[name]["rank"]))
    staying = [name for name in in_order if name != baseline][:n_kept]
    last = ranked[staying[-1]]["rank"] if staying else None
    found = []
    for name in in_order:
        row, stays = ranked[name], name == baseline or name in staying
        mean = row["mean"] if row["ranked_by"] is None else row["ranked_by"]
        place = (int(row["rank"]), None if mean is None else float(mean), int(row["scored"]), int(row["asked"]))
        found.append(Standing(name, labels[name], *place, stays, is_tied=not stays and row["rank"] == last))
    without = (Standing(name, label, stays=name == baseline) for name, label in labels.items() if name not in ranked)
    return (*found, *without)


def closest_call(
    scores: pd.DataFrame, metric: str, scale: Scale, found: Sequence[Standing], baseline: str
) -> ClosestCall | None:
    """Return how near the first dropped variant was to the last that stays; None where that cannot be told."""
    raced = [one for one in found if one.variant_id != baseline and one.rank is not None]
    kept, dropped = [one for one in raced if one.stays], [one for one in raced if not one.stays]
    if not kept or not dropped:
        return None
    pair = (kept[-1].variant_id, dropped[0].variant_id)
    values = _values(scores, metric, _held(scores, metric, scale).worst)
    gaps = [scale.sign * (values[pair[0]][name] - values[pair[1]][name]) for name in _shared(values, pair)]
    if len(gaps) < 2:
        return None
    mean = math.fsum(gaps) / len(gaps)
    spread = math.sqrt(math.fsum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1))
    return ClosestCall(*pair, mean, spread / math.sqrt(len(gaps)))


def _held(scores: pd.DataFrame, metric: str, scale: Scale) -> Scale:
    """Return the scale without a bound that a score lies beyond."""
    return scales_of(scores, {metric: scale}).get(metric, scale)


def _values(scores: pd.DataFrame, metric: str, worst: float | None) -> dict[str, dict[str, float]]:
    """Return by variant what each question counts: its mean, failed repeats at the worst value where there is one."""
    questions = per_question(scores, [metric])
    judged = questions.assign(value=with_failures_at(questions, worst)).dropna(subset="value")
    found: dict[str, dict[str, float]] = {}
    for variant, name, value in zip(judged["variant_id"], judged["question_id"], judged["value"], strict=True):
        found.setdefault(str(variant), {})[str(name)] = float(value)
    return found


def _shared(values: Mapping[str, Mapping[str, float]], pair: tuple[str, str]) -> list[str]:
    first, second = (values.get(name, {}) for name in pair)
    return sorted(first.keys() & second.keys())
