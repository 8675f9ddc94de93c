"""Summaries of a table of scores in which missing is not zero, and comparisons on the questions that both sides have.

The table has one row a (variant, question, metric, repeat), as in `scores.parquet`: `variant_id`, `question_id`,
`metric`, `repeat`, `value` (float, null where not scored), `status` (`scored`, `failed`, `not_applicable`), `reason`.
Repeats are averaged within their question first: they are not further questions. A row marked `scored` without a finite
value counts as failed. In the results, a number that cannot be told is None, so all columns have dtype object
(`astype(float)` for plots).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from rag_lab.errors import ConfigError, unknown_name
from rag_lab.statistics.corrections import holm
from rag_lab.statistics.intervals import mean_intervals, paired_differences
from rag_lab.statistics.randomization import N_PERMUTATIONS
from rag_lab.statistics.verdict import verdict

SUMMARY_COLUMNS = (
    *("variant_id", "metric", "asked", "scored", "failed", "not_applicable"),
    *("mean", "low", "high", "worst", "best", "reason"),
)
COMPARISON_COLUMNS = (
    *("variant_id", "metric", "n", "difference", "low", "high", "p_value", "p_corrected"),
    *("wins", "ties", "losses", "verdict"),
)
_INPUT_COLUMNS = ("variant_id", "question_id", "metric", "value", "status", "reason")
_CELL = ["variant_id", "metric"]


def summary(scores: pd.DataFrame, confidence: float = 0.95, seed: int = 0) -> pd.DataFrame:
    """Return one row a (variant_id, metric), in order of first appearance.

    Columns:
        variant_id, metric
        asked: questions with a row; scored + failed + not_applicable
        scored: questions with at least one score; `mean` is over these
        failed: questions without a score of which at least one repeat failed
        not_applicable: the other questions
        mean, low, high: mean over the scored questions and its BCa bootstrap interval
        worst, best: the mean if every failed row had scored 0, or 1; None for a metric outside [0, 1]
        reason: why a number is missing or weak, else empty

    Raises:
        ConfigError: if a column of the table is missing.
    """
    questions = _per_question(scores)
    cells = list(questions.groupby(_CELL, sort=False))
    intervals = mean_intervals([_numbers(cell["mean"]) for _, cell in cells], confidence, seed)
    reasons = _commonest_reasons(scores)
    rows = []
    for (key, cell), interval in zip(cells, intervals, strict=True):
        scored = int(cell["scored"].sum())
        failed = int((cell["failed"] & ~cell["scored"]).sum())
        counts = (len(cell), scored, failed, len(cell) - scored - failed)
        reason = interval.reason if scored else reasons.get(key, interval.reason)
        rows.append((*key, *counts, interval.mean, interval.low, interval.high, *_limits(cell), reason))
    return _frame(rows, SUMMARY_COLUMNS)


def comparisons(scores: pd.DataFrame, baseline: str, confidence: float = 0.95, seed: int = 0) -> pd.DataFrame:
    """Return one row a (variant_id other than `baseline`, metric), in order of first appearance.

    Columns:
        variant_id, metric
        n: questions that both the variant and the baseline have a score for; all that follows is over these
        difference: mean of variant minus baseline
        low, high: its BCa bootstrap interval
        p_value: two-sided sign-flip test
        p_corrected: after Holm, over all rows of this table
        wins, ties, losses: questions on which the variant is above, equal, below
        verdict: `better`, `worse`, or a sentence that says why neither can be said (see `verdict`)

    Raises:
        ConfigError: if `baseline` is no variant of the table, or a column of the table is missing.
    """
    questions = _per_question(scores)
    variants = list(dict.fromkeys(scores["variant_id"]))
    if baseline not in variants:
        raise ConfigError(unknown_name("baseline variant", baseline, map(str, variants)))
    cells = {key: cell.set_index("question_id")["mean"].dropna() for key, cell in questions.groupby(_CELL, sort=False)}
    keys = [(variant_id, metric) for variant_id, metric in cells if variant_id != baseline]
    pairs = [_both(cells[key], cells.get((baseline, key[1]))) for key in keys]
    # Enough flips that Holm's strictest step can still be met: p_corrected can fall to about 0.01.
    differences = paired_differences(pairs, confidence, seed, max(N_PERMUTATIONS, 100 * len(pairs)))
    corrected = holm([difference.p_value for difference in differences])
    n_tested = sum(p_value is not None for p_value in corrected)
    rows = [
        (*key, d.n, d.mean, d.low, d.high, d.p_value, p, d.wins, d.ties, d.losses, verdict(d, p, n_tested))
        for key, d, p in zip(keys, differences, corrected, strict=True)
    ]
    return _frame(rows, COMPARISON_COLUMNS)


def _per_question(scores: pd.DataFrame) -> pd.DataFrame:
    """Return a row a (variant_id, metric, question_id): scored, failed (any repeat), mean, worst, best."""
    missing = [column for column in _INPUT_COLUMNS if column not in scores.columns]
    if missing:
        raise ConfigError(f"The table of scores lacks the columns {', '.join(missing)}; give one as in scores.parquet.")
    value = pd.to_numeric(scores["value"]).astype(float)
    scored = (scores["status"] == "scored") & np.isfinite(value)
    failed = scores["status"].isin(["scored", "failed"]) & ~scored
    rows = scores[[*_CELL, "question_id"]].assign(
        scored=scored,
        failed=failed,
        mean=value.where(scored),
        worst=value.where(scored).mask(failed, 0.0),
        best=value.where(scored).mask(failed, 1.0),
        smallest=value.where(scored),
        largest=value.where(scored),
    )
    how = {"scored": "any", "failed": "any", "mean": "mean", "worst": "mean", "best": "mean"}
    grouped = rows.groupby([*_CELL, "question_id"], sort=False, observed=True)
    return grouped.agg({**how, "smallest": "min", "largest": "max"}).reset_index()


def _limits(cell: pd.DataFrame) -> tuple[float | None, float | None]:
    """Return the worst and the best mean that the failed rows leave open."""
    outside = (cell["smallest"] < 0) | (cell["largest"] > 1)
    judged = cell[cell["scored"] | cell["failed"]]
    if outside.any() or judged.empty:
        return None, None
    return float(judged["worst"].mean()), float(judged["best"].mean())


def _both(ours: pd.Series[float], theirs: pd.Series[float] | None) -> tuple[list[float], list[float]]:
    """Return the scores of the questions that both have, in one order."""
    if theirs is None:
        return [], []
    shared = ours.index.intersection(theirs.index)
    return _numbers(ours[shared]), _numbers(theirs[shared])


def _numbers(column: pd.Series[float]) -> list[float]:
    return [float(value) for value in column.dropna()]


def _commonest_reasons(scores: pd.DataFrame) -> dict[Any, str]:
    """Return the most frequent reason of each (variant_id, metric) among the rows without a score."""
    reasons = scores["reason"].astype(object).fillna("").astype(str)
    rows = scores.assign(reason=reasons)[(scores["status"] != "scored") & (reasons != "")]
    return {key: str(cell["reason"].mode().iloc[0]) for key, cell in rows.groupby(_CELL, sort=False)}


def _frame(rows: list[tuple[Any, ...]], columns: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(columns), dtype=object)
