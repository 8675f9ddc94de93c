"""Every metric by the class and by the tags of the questions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pandas as pd

from rag_lab.comparison.run_tables import RunTables
from rag_lab.records import QUERY_CLASSES
from rag_lab.statistics.complete_cases import SUMMARY_COLUMNS, summary


def by_class(tables: RunTables) -> pd.DataFrame:
    """Return `summary` of each query class, as the dataset labels it, in their usual order."""
    asked = tables.asked
    groups: dict[str, Collection[str]] = {
        name: {q for q, one in asked.items() if one.query_class == name} for name in QUERY_CLASSES
    }
    return _by_group(tables, groups, "query_class")


def by_tag(tables: RunTables) -> pd.DataFrame:
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
