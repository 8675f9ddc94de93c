"""Question by question, what a variant won and lost against the baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from rag_lab.errors import ConfigError, unknown_name
from rag_lab.statistics.per_question import per_question
from rag_lab.statistics.scales import SHARE

if TYPE_CHECKING:
    from rag_lab.comparison.run_tables import RunTables


def paired_questions(tables: RunTables, variant_id: str, metric: str | None = None) -> pd.DataFrame:
    """Return a row for each question that has a score under both, the one on which the variant lost most first.

    Columns: question_id, query_class, question, the baseline's score and the variant's by their ids, and `gain`, their
    difference with the sign with which more is better. Questions of equal gain stand in the order in which they were
    asked.

    Args:
        tables: the run.
        variant_id: a variant that is not the baseline.
        metric: the main metric where None.

    Raises:
        ConfigError: if the run has no such variant or metric, or nothing to pair it with.
    """
    metric, baseline = metric or tables.main_metric or "", tables.run.baseline
    others = [plan.variant_id for plan in tables.variants if plan.variant_id != baseline]
    if variant_id not in others:
        raise ConfigError(unknown_name("variant beside the baseline", variant_id, others))
    if metric not in set(tables.scores["metric"]):
        raise ConfigError(unknown_name("metric of the run", metric, dict.fromkeys(tables.scores["metric"])))
    scored = per_question(tables.scores, [metric])
    means = scored[scored["scored"]].pivot_table(index="question_id", columns="variant_id", values="mean")
    both = means.reindex(columns=[baseline, variant_id]).dropna()
    asked = {name: question for name, question in tables.asked.items() if name in both.index}
    table = pd.DataFrame(
        {
            "question_id": list(asked),
            "query_class": [question.query_class for question in asked.values()],
            "question": [question.text for question in asked.values()],
            baseline: both[baseline].reindex(list(asked)).to_numpy(),
            variant_id: both[variant_id].reindex(list(asked)).to_numpy(),
        }
    )
    sign = tables.scales.get(metric, SHARE).sign
    gains = table.assign(gain=sign * (table[variant_id] - table[baseline]))
    return gains.sort_values("gain", kind="stable", ignore_index=True)
