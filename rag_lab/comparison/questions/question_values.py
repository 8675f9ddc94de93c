"""Every score of every question as plain lists, and what befell each variant: what a list is filtered by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from rag_lab.comparison.comparison import Comparison
from rag_lab.records import Trace
from rag_lab.statistics.per_question import per_question

FAILED = "x"  # in the place of a value: the score failed
_DIGITS = 9  # of a value: enough for the order of any two that are not equal but for rounding
FALLBACK, STAGE_FAILED, ANSWERED, ABSTAINED = 1, 2, 4, 8

Value = float | str | None  # None: not scored and not to be scored


@dataclass(frozen=True, slots=True)
class QuestionValues:
    """Questions and variants (baseline first) stand in the order of the comparison.

    values: metric -> one row a question, with a value a variant: the mean over repeats, `FAILED` or None.
    marks: one text a question, a hexadecimal digit a variant: the sum of what befell it (`FALLBACK`, ...).
    """

    questions: tuple[str, ...]
    values: dict[str, list[list[Value]]]
    marks: list[str]


def question_values(comparison: Comparison) -> QuestionValues:
    """Return the values of every metric that is compared or is a cost."""
    questions = tuple(comparison.asked)
    metrics = (*comparison.quality_metrics, *comparison.cost_metrics)
    table = per_question(comparison.scores)
    by_metric = dict(list(table.groupby("metric", sort=False)))
    variants = list(comparison.codes)
    values = {metric: _values(by_metric.get(metric), questions, variants) for metric in metrics}
    return QuestionValues(questions, values, _marks(comparison, questions))


def _values(table: pd.DataFrame | None, questions: Sequence[str], variants: Sequence[str]) -> list[list[Value]]:
    row = {name: place for place, name in enumerate(questions)}
    column = {name: place for place, name in enumerate(variants)}
    found: list[list[Value]] = [[None] * len(variants) for _ in questions]
    if table is not None:
        columns = (table[name].tolist() for name in ("question_id", "variant_id", "mean", "scored", "failed"))
        for question, variant, mean, scored, failed in zip(*columns, strict=True):
            if (scored or failed) and question in row:
                found[row[question]][column[variant]] = float(f"{mean:.{_DIGITS}g}") if scored else FAILED
    return found


def _marks(comparison: Comparison, questions: Sequence[str]) -> list[str]:
    row = {name: place for place, name in enumerate(questions)}
    marks = [[0] * len(comparison.codes) for _ in questions]
    for place, variant in enumerate(comparison.codes):
        for trace in comparison.traces[variant]:
            marks[row[trace.question.question_id]][place] |= _mark(trace)
    return ["".join(f"{mark:x}" for mark in one) for one in marks]


def _mark(trace: Trace) -> int:
    statuses = {record.status for record in trace.stages}
    mark = FALLBACK * ("fallback" in statuses) + STAGE_FAILED * ("failed" in statuses)
    if trace.answer is None:
        return mark
    return mark + (ABSTAINED if trace.answer.abstained else ANSWERED)
