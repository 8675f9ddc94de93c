"""From a table of scores to one number a question: repeats are averaged, and missing is not zero."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from rag_lab.errors import ConfigError

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


def with_failures_at(questions: pd.DataFrame, end: float | None) -> pd.Series[float]:
    """Return the mean of each row with failed repeats at `end`, left out where that is None; NaN if none was judged."""
    return questions["mean"] if end is None else questions["kept"] + questions["lost"] * end


def numbers(column: pd.Series[float]) -> list[float]:
    """Return the values of `column` that are there."""
    return [float(value) for value in column.dropna()]


def exact_mean(column: pd.Series[float]) -> float:
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
