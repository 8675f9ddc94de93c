"""Summaries of a table of scores in which missing is not zero, and comparisons on the questions that both sides have.

The table has one row a (variant, question, metric, repeat), as in `scores.parquet`: `variant_id`, `question_id`,
`metric`, `repeat`, `value` (float, null where not scored), `status` (`scored`, `failed`, `not_applicable`), `reason`.
Repeats are averaged within their question first: they are not further questions. A row marked `scored` without a finite
value counts as failed. In the results, a number that cannot be told is None, so all columns have dtype object
(`astype(float)` for plots). Numbers do not depend on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

import pandas as pd

from rag_lab.errors import ConfigError, unknown_name
from rag_lab.statistics.corrections import Correction, corrected
from rag_lab.statistics.intervals import PairedDifference, mean_intervals, paired_differences
from rag_lab.statistics.noise_components import NoiseComponents, floor_over
from rag_lab.statistics.per_question import CELL, Clusters, cluster_labels, exact_mean, frame, numbers, per_question
from rag_lab.statistics.randomization import n_flips
from rag_lab.statistics.scales import SHARE, Scale, scales_of
from rag_lab.statistics.verdict import doubt, verdict

SUMMARY_COLUMNS = (
    *("variant_id", "metric", "asked", "scored", "failed", "not_applicable"),
    *("mean", "low", "high", "worst", "best", "reason"),
)
COMPARISON_COLUMNS = (
    *("variant_id", "metric", "n", "difference", "low", "high", "p_value", "p_corrected"),
    *("wins", "ties", "losses", "verdict", "against", "effect_size", "doubt"),
)
Pairs = Literal["baseline", "all"]


def summary(
    scores: pd.DataFrame,
    confidence: float = 0.95,
    seed: int = 0,
    clusters: Clusters | None = None,
    scales: Mapping[Any, Scale] | None = None,
) -> pd.DataFrame:
    """Return one row a (variant_id, metric), in order of first appearance.

    Columns:
        variant_id, metric
        asked: questions with a row; scored + failed + not_applicable
        scored: questions with at least one score; `mean` is over these
        failed: questions without a score of which at least one repeat failed
        not_applicable: the other questions
        mean, low, high: mean over the scored questions and its interval, within the range of the metric
        worst, best: the mean if every failed row had the worst, or the best, value of the metric; None without one
        reason: why a number is missing or weak, else empty

    Args:
        scores: the table.
        confidence: of the intervals.
        seed: of the resamples.
        clusters: resampled as a whole, where given; a question that is not named is a cluster of its own.
        scales: of the metrics that are known; see `scales_of`.

    Raises:
        ConfigError: if a column of the table is missing.
    """
    questions = per_question(scores)
    ranges = scales_of(scores, scales)
    cells = list(questions.groupby(CELL, sort=False))
    asked = [cell.loc[cell["scored"], "question_id"] for _, cell in cells]
    groups = None if clusters is None else [cluster_labels(ids, clusters) for ids in asked]
    limits = [(ranges[metric].low, ranges[metric].high) for (_, metric), _ in cells]
    intervals = mean_intervals([numbers(cell["mean"]) for _, cell in cells], confidence, seed, groups, limits)
    reasons = _commonest_reasons(scores)
    rows = []
    for (key, cell), interval in zip(cells, intervals, strict=True):
        scored = int(cell["scored"].sum())
        failed = int((cell["failed"] & ~cell["scored"]).sum())
        counts = (len(cell), scored, failed, len(cell) - scored - failed)
        reason = interval.reason if scored else reasons.get(key, interval.reason)
        scale = ranges[key[1]]
        ends = (scale.within(interval.low), scale.within(interval.high))
        rows.append((*key, *counts, interval.mean, *ends, *_limits(cell, scale), reason))
    return frame(rows, SUMMARY_COLUMNS)


def comparisons(
    scores: pd.DataFrame,
    baseline: str,
    confidence: float = 0.95,
    seed: int = 0,
    *,
    pairs: Pairs = "baseline",
    correction: Correction = "holm",
    clusters: Clusters | None = None,
    noise: Mapping[str, NoiseComponents] | None = None,
    scales: Mapping[Any, Scale] | None = None,
) -> pd.DataFrame:
    """Return one row a (variant_id, metric, against), in order of first appearance.

    Columns:
        variant_id, metric
        n: questions that both the variant and `against` have a score for; all that follows is over these
        difference: mean of variant minus `against`
        low, high: its interval (see `intervals.paired_differences`)
        p_value: two-sided sign-flip test
        p_corrected: after `correction`, over all rows of this table
        wins, ties, losses: questions on which the variant is better, equal, worse
        verdict: `better`, `worse`, or a sentence that says why neither can be said (see `verdict`)
        against: the baseline; with all pairs, the one of the two that comes first (the baseline before all)
        effect_size: Cohen's d_z, the difference / the standard deviation of the differences; None without spread
        doubt: why what looks like a finding is none, else "" (see `verdict.doubt`)

    Args:
        scores: the table.
        baseline: the variant_id of the baseline.
        confidence: of the intervals.
        seed: of the resamples and of the flips.
        pairs: every variant against the `baseline`, or `all` pairs.
        correction: `holm`, `bh` (Benjamini-Hochberg) or `none`.
        clusters: resampled and flipped as a whole; a question that is not named is a cluster of its own.
        noise: by metric (see `noise.noise`); no difference below the floor of its n questions is called one.
        scales: of the metrics that are known: their range (see `scales_of`), and whether more is better, as it is for
            a metric that is not named.

    Raises:
        ConfigError: if `baseline` is no variant of the table, a column is missing, or an option is unknown.
    """
    variants = list(dict.fromkeys(scores["variant_id"])) if "variant_id" in scores else []
    questions = per_question(scores)
    if baseline not in variants:
        raise ConfigError(unknown_name("baseline variant", baseline, map(str, variants)))
    if pairs not in ("baseline", "all"):
        raise ConfigError(unknown_name("choice of pairs", pairs, ("baseline", "all")))
    cells: dict[Any, pd.Series[float]] = {
        key: cell.set_index("question_id")["mean"].dropna() for key, cell in questions.groupby(CELL, sort=False)
    }
    keys = _keys(list(cells), [baseline, *(v for v in variants if v != baseline)], pairs)
    shared = [_both(cells[variant, metric], cells.get((against, metric))) for variant, metric, against in keys]
    groups = None if clusters is None else [cluster_labels(ids, clusters) for ids, _, _ in shared]
    pairs_of = [(a, b) for _, a, b in shared]
    ranges = scales_of(scores, scales)
    reach = [ranges[metric].width for _, metric, _ in keys]
    differences = paired_differences(pairs_of, confidence, seed, n_flips(len(keys)), groups, reach)
    return _table(keys, differences, correction, noise or {}, scales or {})


def _keys(cells: Sequence[tuple[Any, Any]], variants: Sequence[Any], pairs: Pairs) -> list[tuple[Any, Any, Any]]:
    """Return (variant, metric, against) of every comparison."""
    if pairs == "baseline":
        return [(variant, metric, variants[0]) for variant, metric in cells if variant != variants[0]]
    metrics = list(dict.fromkeys(metric for _, metric in cells))
    return [
        (later, metric, earlier)
        for earlier, later in combinations(variants, 2)
        for metric in metrics
        if (later, metric) in cells
    ]


def _table(
    keys: Sequence[tuple[Any, Any, Any]],
    differences: Sequence[PairedDifference],
    correction: Correction,
    noise: Mapping[str, NoiseComponents],
    scales: Mapping[Any, Scale],
) -> pd.DataFrame:
    p_values = corrected([difference.p_value for difference in differences], correction)
    n_tested = sum(p_value is not None for p_value in p_values) if correction != "none" else 1
    rows = []
    for (variant, metric, against), d, p in zip(keys, differences, p_values, strict=True):
        more = scales.get(metric, SHARE).higher_is_better
        floor = floor_over(noise.get(metric), d.n)
        said = verdict(d, p, n_tested, floor, more)
        wins, losses = (d.wins, d.losses) if more else (d.losses, d.wins)
        numbers_of_d = (d.n, d.mean, d.low, d.high, d.p_value, p, wins, d.ties, losses)
        rows.append((variant, metric, *numbers_of_d, said, against, d.effect_size, doubt(d, p, n_tested, floor)))
    return frame(rows, COMPARISON_COLUMNS)


def _limits(cell: pd.DataFrame, scale: Scale) -> list[float | None]:
    """Return the worst and the best mean that the failed rows leave open."""
    judged = cell[cell["scored"] | cell["failed"]]
    ends = (scale.worst, scale.best)
    return [None if end is None or judged.empty else exact_mean(judged["kept"] + judged["lost"] * end) for end in ends]


def _both(ours: pd.Series[float], theirs: pd.Series[float] | None) -> tuple[Sequence[Any], list[float], list[float]]:
    """Return the questions that both have, and the scores of both, in one order."""
    if theirs is None:
        return [], [], []
    shared = ours.index.intersection(theirs.index)
    return list(shared), numbers(ours[shared]), numbers(theirs[shared])


def _commonest_reasons(scores: pd.DataFrame) -> dict[Any, str]:
    """Return the most frequent reason of each (variant_id, metric) among the rows without a score."""
    reasons = scores["reason"].astype(object).fillna("").astype(str)
    rows = scores.assign(reason=reasons)[(scores["status"] != "scored") & (reasons != "")]
    return {key: str(cell["reason"].mode().iloc[0]) for key, cell in rows.groupby(CELL, sort=False)}
