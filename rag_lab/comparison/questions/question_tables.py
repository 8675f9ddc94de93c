"""Question by question: scores of all variants, and what a variant won and lost against the baseline."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.records import QUERY_CLASSES, Question, Trace
from rag_lab.statistics.per_question import per_question
from rag_lab.statistics.summaries import SUMMARY_COLUMNS, summary

FAILED = "x"  # in the place of a value: the score failed
_DIGITS = 9  # of a value: enough for the order of any two that are not equal but for rounding
FALLBACK, STAGE_FAILED, ANSWERED, ABSTAINED = 1, 2, 4, 8
Value = float | str | None  # None: not scored and not to be scored


def scores_by_question(
    scores: pd.DataFrame, metric: str, asked: Mapping[str, Question], variants: Iterable[str]
) -> pd.DataFrame:
    """Return a row a question: its id, class and text, and for each variant its mean over repeats, NaN without any."""
    means = per_question(scores, [metric]).pivot(index="question_id", columns="variant_id", values="mean")
    table = means.reindex(index=list(asked), columns=list(variants)).astype(float).reset_index(names="question_id")
    table.insert(1, "query_class", [question.query_class for question in asked.values()])
    table.insert(2, "question", [question.text for question in asked.values()])
    return table


def paired_questions(tables: RunTables, variant_id: str, metric: str | None = None) -> pd.DataFrame:
    """Return a row for each question that has a score under both, the one on which the variant lost most first.

    Columns: question_id, query_class, question, the baseline's score and the variant's by their ids, and `gain`, their
    difference with the sign with which more is better. Questions of equal gain stand in the order in which they were
    asked.

    Raises:
        ConfigError: if the run has no such variant or metric, or nothing to pair it with.
    """
    metric, baseline = metric or tables.main_metric or "", tables.run.baseline
    others = [plan.variant_id for plan in tables.variants if plan.variant_id != baseline]
    if variant_id not in others:
        raise ConfigError(unknown_name("variant beside the baseline", variant_id, others))
    if metric not in set(tables.scores["metric"]):
        raise ConfigError(unknown_name("metric of the run", metric, dict.fromkeys(tables.scores["metric"])))
    both = [baseline, variant_id]
    table = scores_by_question(tables.scores, metric, tables.asked, both).dropna(subset=both)
    gains = table.assign(gain=tables.sign(metric) * (table[variant_id] - table[baseline]))
    return gains.sort_values("gain", kind="stable", ignore_index=True)


@dataclass(frozen=True, slots=True)
class QuestionValues:
    """Questions and variants (baseline first) stand in the order of the tables.

    values: metric -> one row a question, with a value a variant: the mean over repeats, `FAILED` or None.
    marks: one text a question, a hexadecimal digit a variant: the sum of what befell it (`FALLBACK`, ...).
    """

    questions: tuple[str, ...]
    values: dict[str, list[list[Value]]]
    marks: list[str]


def question_values(tables: RunTables) -> QuestionValues:
    """Return the values of every metric that is compared or is a cost."""
    questions, variants = tuple(tables.asked), list(tables.codes)
    row = {name: place for place, name in enumerate(questions)}
    column = {name: place for place, name in enumerate(variants)}
    values: dict[str, list[list[Value]]] = {
        metric: [[None] * len(variants) for _ in questions]
        for metric in (*tables.quality_metrics, *tables.cost_metrics)
    }
    table = per_question(tables.scores)
    names = ("metric", "question_id", "variant_id", "mean", "scored", "failed")
    columns = (table[name].tolist() for name in names)
    for metric, question, variant, mean, scored, failed in zip(*columns, strict=True):
        if (scored or failed) and question in row and metric in values:
            values[metric][row[question]][column[variant]] = float(f"{mean:.{_DIGITS}g}") if scored else FAILED
    marks = [[0] * len(variants) for _ in questions]
    for place, variant in enumerate(variants):
        for trace in tables.traces[variant]:
            marks[row[trace.question.question_id]][place] |= _mark(trace)
    return QuestionValues(questions, values, ["".join(f"{mark:x}" for mark in one) for one in marks])


def _mark(trace: Trace) -> int:
    statuses = {record.status for record in trace.stages}
    mark = FALLBACK * ("fallback" in statuses) + STAGE_FAILED * ("failed" in statuses)
    if trace.answer is None:
        return mark
    return mark + (ABSTAINED if trace.answer.abstained else ANSWERED)


def summary_by_class(tables: RunTables) -> pd.DataFrame:
    """Return `summary` of each query class, as the dataset labels it, in their usual order."""
    asked = tables.asked
    groups: dict[str, Collection[str]] = {
        name: {q for q, one in asked.items() if one.query_class == name} for name in QUERY_CLASSES
    }
    return _by_group(tables, groups, "query_class")


def summary_by_tag(tables: RunTables) -> pd.DataFrame:
    """Return `summary` of each tag, in order of first appearance; a question counts in each of its tags."""
    asked = tables.asked
    tags = dict.fromkeys(tag for question in asked.values() for tag in question.tags)
    groups = {tag: {name for name, one in asked.items() if tag in one.tags} for tag in tags}
    return _by_group(tables, groups, "tag")


def _by_group(tables: RunTables, groups: Mapping[str, Collection[str]], column: str) -> pd.DataFrame:
    parts, scores = [], tables.scores
    for name, questions in groups.items():
        rows = scores[scores["question_id"].isin(questions)]
        if not rows.empty:
            parts.append(summary(rows, clusters=tables.clusters, scales=tables.scales).assign(**{column: name}))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=[*SUMMARY_COLUMNS, column])
