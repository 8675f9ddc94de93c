"""Scales of metrics, and summaries and an order of the variants, of a table of scores in which missing is not zero.

The table has one row a (variant, question, metric, repeat), as in `scores.parquet`: `variant_id`, `question_id`,
`metric`, `repeat`, `value` (float, null where not scored), `status` (`scored`, `failed`, `not_applicable`), `reason`.
Repeats are averaged within their question first (`per_question`): they are not further questions. A row marked `scored`
without a finite value counts as failed. In the results an unknown number is None, so all columns have dtype object
(`astype(float)` for plots). Numbers do not depend on the order of the rows.

In the order no variant rises because something failed, as it would by means over scored questions: a failed question
counts as the worst score that the metric can take, so it is worth no more than any score it replaced. Where a variant
has no failures, that is its plain mean. In a metric without a worst value a variant with more scored questions stands
before one with fewer, and means decide only between equals.
"""

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rag_lab.errors import ConfigError
from rag_lab.statistics.intervals import mean_intervals

_ROUNDING = 1e-6  # a cosine of 1.0000001 is within its range


@dataclass(frozen=True, slots=True)
class Scale:
    """The range of a metric, with None where it has no bound; by default a share of which more is better."""

    low: float | None = 0.0
    high: float | None = 1.0
    higher_is_better: bool = True

    @property
    def sign(self) -> int:
        """What a difference is multiplied with, so that more is better."""
        return 1 if self.higher_is_better else -1

    @property
    def worst(self) -> float | None:
        """The worst value that the metric can take."""
        return self.low if self.higher_is_better else self.high

    @property
    def best(self) -> float | None:
        """The best value that the metric can take."""
        return self.high if self.higher_is_better else self.low

    @property
    def width(self) -> float | None:
        """The largest possible difference of two values; None where the range is open."""
        return None if self.low is None or self.high is None else self.high - self.low

    def named(self, metric: str) -> str:
        """Return the name of a metric, and that lower is better where it is."""
        return metric if self.higher_is_better else f"{metric} (lower is better)"

    def within(self, value: float | None) -> float | None:
        """Return a value, or the end of the range that it lies beyond."""
        if value is None:
            return None
        above = value if self.low is None else max(value, self.low)
        return above if self.high is None else min(above, self.high)


SHARE, UNKNOWN = Scale(), Scale(None, None)


def scales_of(scores: pd.DataFrame, known: Mapping[Any, Scale] | None = None) -> dict[Any, Scale]:
    """Return the scale of each metric of the table.

    A known one loses a bound that a score lies beyond. A metric of unknown range is a share where all its scores could
    be one, and otherwise has no range.
    """
    value = pd.to_numeric(scores["value"]).astype(float)
    value = value.where((scores["status"] == "scored") & np.isfinite(value))
    found = {}
    for metric, values in value.groupby(scores["metric"], sort=False):
        scale = (known or {}).get(metric, UNKNOWN)
        is_open = scale.low is None and scale.high is None
        share = replace(SHARE, higher_is_better=scale.higher_is_better)
        ends = share if is_open else scale
        low = None if ends.low is None or values.min() < ends.low - _ROUNDING else ends.low
        high = None if ends.high is None or values.max() > ends.high + _ROUNDING else ends.high
        around = replace(ends, low=low, high=high)
        found[metric] = scale if is_open and around != share else around
    return found


INPUT_COLUMNS = ("variant_id", "question_id", "metric", "value", "status", "reason")
CELL = ["variant_id", "metric"]
Clusters = Mapping[Any, Hashable]  # question_id to its document, or whatever else questions have in common
_QUESTION = [*CELL, "question_id"]


def per_question(scores: pd.DataFrame, metrics: Collection[Any] | None = None) -> pd.DataFrame:
    """Return a row a (variant_id, metric, question_id), in order of first appearance; of all metrics, or of these.

    Further columns: `scored` and `failed` (any repeat), `mean` over the scored repeats (NaN without one), `kept` and
    `lost` (the mean with 0 for the failed repeats, and their share: see `with_failures_at`).
    """
    missing = [column for column in INPUT_COLUMNS if column not in scores.columns]
    if missing:
        raise ConfigError(f"The table of scores lacks the columns {', '.join(missing)}; give one as in scores.parquet.")
    if metrics is not None:
        scores = scores[scores["metric"].isin(metrics)]
    value = pd.to_numeric(scores["value"]).astype(float)
    scored = (scores["status"] == "scored") & np.isfinite(value)
    failed = scores["status"].isin(["scored", "failed"]) & ~scored
    rows = scores[_QUESTION].assign(
        scored=scored,
        failed=failed,
        mean=value.where(scored),
        kept=value.where(scored).mask(failed, 0.0),
        lost=failed.astype(float).where(scored | failed),
    )
    how = {"scored": "any", "failed": "any", "mean": "mean", "kept": "mean", "lost": "mean"}
    # A sum of floats depends on its order in the last digit, and no result may depend on the order of the rows.
    by_value = rows.iloc[np.argsort(value.to_numpy(), kind="stable")]
    grouped = by_value.groupby(_QUESTION, sort=False, observed=True)
    found = grouped.agg(how).reset_index()
    return rows[_QUESTION].drop_duplicates().merge(found, on=_QUESTION, how="left")


def with_failures_at(questions: pd.DataFrame, end: float | None) -> "pd.Series[float]":
    """Return the mean of each row with failed repeats at `end`, left out where that is None; NaN if none was judged."""
    return questions["mean"] if end is None else questions["kept"] + questions["lost"] * end


def exact_mean(column: "pd.Series[float]") -> float:
    """Return the mean, the same to the last digit for any order; the column has at least one value."""
    return math.fsum(column) / len(column)


def frame(rows: list[tuple[Any, ...]], columns: tuple[str, ...]) -> pd.DataFrame:
    """Return a table of dtype object, in which what cannot be told is None rather than NaN."""
    return pd.DataFrame(rows, columns=list(columns), dtype=object)


def unit_places(question_ids: Iterable[Any], clusters: Clusters | None) -> dict[Any, int]:
    """Return the unit of each question, its cluster or itself, numbered from 0 by the sorted ids."""
    ids = sorted(set(question_ids), key=str)
    labels = cluster_labels(ids, clusters or {})
    places = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return {one: places[label] for one, label in zip(ids, labels, strict=True)}


def cluster_labels(question_ids: Iterable[Any], clusters: Clusters) -> list[Hashable]:
    """Return the cluster of each question; one that is not named is a cluster of its own."""
    return [("cluster", clusters[name]) if name in clusters else ("question", name) for name in question_ids]


SUMMARY_COLUMNS = (
    *("variant_id", "metric", "asked", "scored", "failed", "not_applicable"),
    *("mean", "low", "high", "worst", "best", "reason"),
)
RANKING_COLUMNS = ("rank", "variant_id", "ranked_by", "mean", "scored", "failed", "asked")


def summary(
    scores: pd.DataFrame,
    confidence: float = 0.95,
    seed: int = 0,
    clusters: Clusters | None = None,
    scales: Mapping[Any, Scale] | None = None,
) -> pd.DataFrame:
    """Return one row a (variant_id, metric), in order of first appearance.

    Columns:
        asked: questions with a row; scored + failed + not_applicable
        scored: questions with at least one score; `mean` is over these
        failed: questions without a score of which at least one repeat failed
        not_applicable: the other questions
        mean, low, high: mean over the scored questions and its interval, within the range of the metric
        worst, best: the mean if every failed row had the worst, or the best, value of the metric; None without one
        reason: why a number is missing or weak, else empty

    `clusters` are resampled as a whole; a question that is not named is a cluster of its own.
    """
    questions = per_question(scores)
    ranges = scales_of(scores, scales)
    cells: list[tuple[tuple[Any, Any], _Cell]] = []  # in order of first appearance
    if not questions.empty:
        numbers = questions.groupby(CELL, sort=False).ngroup().to_numpy()
        places = np.argsort(numbers, kind="stable")
        parts = np.split(places, np.flatnonzero(np.diff(numbers[places])) + 1)
        named = questions[CELL].iloc[[part[0] for part in parts]].itertuples(index=False, name=None)
        columns = [questions[each.name].to_numpy() for each in fields(_Cell)]
        cells = [(key, _Cell(*(column[part] for column in columns))) for key, part in zip(named, parts, strict=True)]
    groups = (
        None if clusters is None else [cluster_labels(cell.question_id[cell.scored], clusters) for _, cell in cells]
    )
    possible = [(ranges[metric].low, ranges[metric].high) for (_, metric), _ in cells]
    samples = [cell.mean[~np.isnan(cell.mean)].tolist() for _, cell in cells]
    intervals = mean_intervals(samples, confidence, seed, groups, possible)
    unscored = scores[scores["metric"].isin([key[1] for key, cell in cells if not cell.scored.any()])]
    unscored = unscored[unscored["status"] != "scored"]
    reasons: dict[tuple[Any, Any], Counter[str]] = {}
    texts = unscored["reason"].astype(object).fillna("").astype(str)
    for variant, metric, text in zip(unscored["variant_id"], unscored["metric"], texts, strict=True):
        reasons.setdefault((variant, metric), Counter())[text] += bool(text)
    commonest = {key: min(found, key=lambda text: (-found[text], text)) for key, found in reasons.items()}
    rows = []
    for (key, cell), interval in zip(cells, intervals, strict=True):
        scored, asked = int(cell.scored.sum()), len(cell.scored)
        failed = int((cell.failed & ~cell.scored).sum())
        counts = (asked, scored, failed, asked - scored - failed)
        reason = interval.reason if scored else commonest.get(key) or interval.reason
        scale = ranges[key[1]]
        ends = (scale.within(interval.low), scale.within(interval.high))
        judged = cell.scored | cell.failed
        n, kept, lost = int(judged.sum()), cell.kept[judged], cell.lost[judged]
        limits = [
            None if end is None or not n else math.fsum(kept + lost * end) / n for end in (scale.worst, scale.best)
        ]
        rows.append((*key, *counts, interval.mean, *ends, *limits, reason))
    return frame(rows, SUMMARY_COLUMNS)


@dataclass(frozen=True, slots=True)
class _Cell:
    """The columns of `per_question` of one variant and metric, as arrays: there are thousands of cells."""

    question_id: npt.NDArray[Any]
    scored: npt.NDArray[np.bool_]
    failed: npt.NDArray[np.bool_]
    mean: npt.NDArray[np.float64]
    kept: npt.NDArray[np.float64]
    lost: npt.NDArray[np.float64]


def ranking(scores: pd.DataFrame, metric: str, scale: Scale = SHARE) -> pd.DataFrame:
    """Return one row a variant of the table, best first.

    Columns:
        rank: from 1; equals share one
        ranked_by: the mean with the worst value for everything that failed; None without one, or if nothing was asked
        mean: over the scored questions
        scored, failed, asked: questions; one that others were asked and this variant has no row for has failed, one
            to which the metric does not apply is not asked
    """
    ours = per_question(scores, [metric])
    variants = scores["variant_id"].unique().tolist()
    is_bounded = scale.low is not None or scale.high is not None
    if is_bounded and scales_of(scores, {metric: scale}).get(metric, scale) != scale:
        raise ConfigError(f"{metric} has scores beyond its range; give a scale that holds them, or `UNKNOWN`.")
    everything, worst = set(ours["question_id"]), scale.worst
    rows: list[tuple[Any, ...]] = []
    for variant in variants:
        cell = ours[ours["variant_id"] == variant]
        without_row = len(everything - set(cell["question_id"]))
        scored, failed = int(cell["scored"].sum()), int((cell["failed"] & ~cell["scored"]).sum()) + without_row
        mean = exact_mean(cell["mean"].dropna()) if scored else None
        by = None
        if worst is not None and scored + failed:
            asked = cell[cell["scored"] | cell["failed"]]
            by = (math.fsum(with_failures_at(asked, worst)) + without_row * worst) / (scored + failed)
        rows.append((variant, by, mean, scored, failed, scored + failed))
    order = sorted(range(len(rows)), key=lambda index: (_key(rows[index], scale), index))
    ranks: list[int] = []
    for place, index in enumerate(order):
        equal = place > 0 and _key(rows[index], scale) == _key(rows[order[place - 1]], scale)
        ranks.append(ranks[-1] if equal else place + 1)
    return frame([(rank, *rows[index]) for rank, index in zip(ranks, order, strict=True)], RANKING_COLUMNS)


def _key(row: tuple[Any, ...], scale: Scale) -> tuple[float, ...]:
    """Return what is sorted by, smallest first: nothing that grows when a question fails may improve it."""
    _, by, mean, scored, failed, _ = row
    if by is not None:
        return (-scale.sign * by, failed)
    return (-scored, -scale.sign * mean if mean is not None else 0.0)
