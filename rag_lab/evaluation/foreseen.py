"""What a run can measure, told before it: which questions lack what a metric needs, and what it reads of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from rag_lab.evaluation.metric import NOT_ASKED, Gap, Needs, question_gap
from rag_lab.evaluation.ragas.table import SPECS
from rag_lab.evaluation.registry import AnyMetric, ParsedName, parse_name
from rag_lab.records import Question


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A metric that will be `not_applicable` to `n` of `n_questions`, all for one reason."""

    metric: str
    n: int
    n_questions: int
    reason: str

    def __str__(self) -> str:
        return f"Metric {self.metric} is not applicable to {self.n} of {self.n_questions} questions: {self.reason}."


def foreseen_gaps(
    metrics: Iterable[AnyMetric], questions: Sequence[Question], answered: Collection[str] | None = None
) -> list[Foreseen]:
    """Return what will be `not_applicable` by the questions alone: in the order of `metrics`, commonest reason first.

    Args:
        metrics: as `evaluate` takes them.
        questions: what will be asked.
        answered: ids of those for which answers are generated; all where None.

    Raises:
        ConfigError: if no metric has one of the names.
    """
    found = []
    for parsed in map(parse_name, metrics):
        needs = parsed.info.needs
        reasons = Counter(gap.reason for question in questions if (gap := _gap(question, needs, answered)))
        found += [Foreseen(parsed.name, n, len(questions), reason) for reason, n in reasons.most_common()]
    return found


def reads_of(metrics: Iterable[AnyMetric], answered: Collection[str]) -> Callable[[Question], frozenset[str]]:
    """Return a function that tells which fields of a question's trace `metrics` read; none where none applies to it.

    Args:
        metrics: as `evaluate` takes them.
        answered: ids of the questions for which answers are generated.
    """
    infos = [parse_name(metric).info for metric in metrics]

    def reads(question: Question) -> frozenset[str]:
        applying = [info.reads for info in infos if _gap(question, info.needs, answered) is None]
        return frozenset[str]().union(*applying)

    return reads


def applies(metric: AnyMetric | ParsedName, question: Question, is_answered: bool) -> bool:
    """Tell whether a question's labels, and whether it is answered, let `metric` measure anything on it."""
    needs = (metric if isinstance(metric, ParsedName) else parse_name(metric)).info.needs
    return _gap(question, needs, {question.question_id} if is_answered else ()) is None


def compares_passages(metric: AnyMetric) -> bool:
    """Tell whether `metric` compares what was read with the passages that are the evidence, so that labels must say."""
    spec = SPECS.get(parse_name(metric).name.removeprefix("ragas."))
    return spec is not None and "reference_contexts" in spec.arguments


def _gap(question: Question, needs: Needs, answered: Collection[str] | None) -> Gap | None:
    is_answered = answered is None or question.question_id in answered
    return question_gap(question, needs) or (NOT_ASKED if "answer" in needs and not is_answered else None)
