"""What is measured where nobody says what: as much as the labels of the questions allow."""

from __future__ import annotations

from collections.abc import Iterable

from rag_lab.records import Question

BY_EVIDENCE = ("retrieval.ndcg@10",)
BY_REFERENCE = ("answer.token_f1",)
WITHOUT_LABELS = ("cost.seconds", "cost.tokens")


def default_metrics(questions: Iterable[Question]) -> tuple[str, ...]:
    """Return the metric that the labels of `questions` allow; what each costs, where they have none.

    Evidence comes before answers: it says more about a pipeline, and no model has to write anything to measure by it.
    """
    asked = list(questions)
    if any(question.evidence for question in asked):
        return BY_EVIDENCE
    return BY_REFERENCE if any(question.answers for question in asked) else WITHOUT_LABELS
