"""On which of the questions that a plan asks a metric can be measured, and how many of them are independent."""

from __future__ import annotations

from collections.abc import Collection

from rag_lab.data.sampling import clusters_of
from rag_lab.evaluation.metric import question_gap
from rag_lab.evaluation.registry import ParsedName
from rag_lab.experiment.plan import Plan
from rag_lab.records import Question


def measured_questions(plan: Plan, metric: ParsedName) -> list[Question]:
    """Return the questions that are asked, or answered where the metric reads answers, and have the labels it needs."""
    asked = set(plan.answered if "answer" in metric.info.needs else plan.questions)
    return [q for q in plan.dataset.questions if q.question_id in asked and not question_gap(q, metric.info.needs)]


def n_units(plan: Plan, questions: Collection[Question]) -> int:
    """Return how many clusters and single questions they are."""
    clusters = clusters_of(questions, plan.experiment.clusters) or {}
    return len({(q.question_id in clusters, clusters.get(q.question_id, q.question_id)) for q in questions})
