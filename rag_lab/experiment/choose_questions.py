"""Which questions of a dataset are asked, and which of them answered: samples that the seed and the questions fix."""

from __future__ import annotations

from collections.abc import Sequence

from rag_lab.data.sampling import stratified
from rag_lab.evaluation.applicability import applies
from rag_lab.evaluation.registry import ParsedName, parse_name
from rag_lab.experiment.config import ExperimentConfig
from rag_lab.records import Question


def choose_questions(
    questions: Sequence[Question],
    experiment: ExperimentConfig,
    answers: bool = True,
    metrics: Sequence[ParsedName] | None = None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids to ask and, among them, those to answer (none without `answers`), in the order of the dataset.

    Samples are stratified and depend on the seed and the questions alone. A question that has no answer is asked only
    where it is answered, since retrieval cannot be measured on it, or where a metric asks what its asker was shown;
    another takes its place in the sample.

    Args:
        questions: of the dataset.
        experiment: its limits and its seed count.
        answers: whether anything is answered.
        metrics: what is measured; None parses the experiment's, whose names say nothing of an object in memory.
    """
    drawn = stratified(questions, len(questions), experiment.seed)
    n_asked = len(drawn) if experiment.limits.questions is None else experiment.limits.questions
    n_answered = n_asked if experiment.limits.answers is None else min(experiment.limits.answers, n_asked)
    answered = set(drawn[: n_answered if answers else 0])
    known = [parse_name(name) for name in experiment.metrics] if metrics is None else metrics
    of_rights = [metric for metric in known if "rights" in metric.info.needs]
    measured = {question.question_id for question in questions if _is_measured(question, of_rights)} | answered
    asked = set([question_id for question_id in drawn if question_id in measured][:n_asked])
    ids = [question.question_id for question in questions]
    return tuple(name for name in ids if name in asked), tuple(name for name in ids if name in answered)


def _is_measured(question: Question, of_rights: Sequence[ParsedName]) -> bool:
    return question.answerable or any(applies(metric, question, False) for metric in of_rights)
