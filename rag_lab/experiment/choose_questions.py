"""Which questions of a dataset are asked, and which of them answered: samples that the seed and the questions fix."""

from __future__ import annotations

from collections.abc import Sequence

from rag_lab.data.sample import stratified
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.records import Question


def choose_questions(
    questions: Sequence[Question], experiment: ExperimentConfig, answers: bool = True
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids to ask and, among them, those to answer (none without `answers`), in the order of the dataset.

    Samples are stratified and depend on the seed and the questions alone. A question that has no answer is asked only
    where it is answered, since retrieval cannot be measured on it; another takes its place in the sample.
    """
    drawn = stratified(questions, len(questions), experiment.seed)
    n_asked = len(drawn) if experiment.limits.questions is None else experiment.limits.questions
    n_answered = n_asked if experiment.limits.answers is None else min(experiment.limits.answers, n_asked)
    answered = set(drawn[: n_answered if answers else 0])
    measured = {question.question_id for question in questions if question.answerable} | answered
    asked = set([question_id for question_id in drawn if question_id in measured][:n_asked])
    ids = [question.question_id for question in questions]
    return tuple(name for name in ids if name in asked), tuple(name for name in ids if name in answered)
