"""What is known of metrics before a run: which questions they do not apply to, what they read, calls of the judge."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from rag_lab.evaluation.metric import NOT_ASKED, Gap, Needs, question_gap
from rag_lab.evaluation.ragas.table import SPECS
from rag_lab.evaluation.registry import AnyMetric, ParsedName, parse_name
from rag_lab.records import Question


@dataclass(frozen=True, slots=True)
class ExpectedGap:
    """A metric that will be `not_applicable` to `n` of `n_questions`, all for one reason."""

    metric: str
    n: int
    n_questions: int
    reason: str

    def __str__(self) -> str:
        return f"Metric {self.metric} is not applicable to {self.n} of {self.n_questions} questions: {self.reason}."


def expected_gaps(
    metrics: Iterable[AnyMetric], questions: Sequence[Question], answered: Collection[str] | None = None
) -> list[ExpectedGap]:
    """Return what will be `not_applicable` by the questions alone: in the order of `metrics`, commonest reason first.

    `answered` has the ids of the questions for which answers are generated; all where None.
    """
    found = []
    for parsed in map(parse_name, metrics):
        needs = parsed.info.needs
        reasons = Counter(gap.reason for question in questions if (gap := _gap(question, needs, answered)))
        found += [ExpectedGap(parsed.name, n, len(questions), reason) for reason, n in reasons.most_common()]
    return found


def reads_of(metrics: Iterable[AnyMetric], answered: Collection[str]) -> Callable[[Question], frozenset[str]]:
    """Return a function from a question to the fields of its trace that `metrics` read, of those that apply to it."""
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
    """Tell whether `metric` compares what was read with the passages that are the evidence, so that labels must name
    them.
    """
    spec = SPECS.get(parse_name(metric).name.removeprefix("ragas."))
    return spec is not None and "reference_contexts" in spec.arguments


def _gap(question: Question, needs: Needs, answered: Collection[str] | None) -> Gap | None:
    is_answered = answered is None or question.question_id in answered
    return question_gap(question, needs) or (NOT_ASKED if "answer" in needs and not is_answered else None)


@dataclass(frozen=True, slots=True)
class JudgeCalls:
    """Calls for a score, where every reply is usable: `fixed`, and `a_passage` more for each passage of the context.

    `prompt_tokens` is what RAGAs' instructions and examples add to the texts that are judged in its longest call.
    """

    fixed: int
    a_passage: int
    prompt_tokens: int

    def of(self, n_passages: int) -> int:
        """Return the calls for one score."""
        return self.fixed + self.a_passage * n_passages


CALLS: dict[str, JudgeCalls] = {
    "ragas.faithfulness": JudgeCalls(2, 0, 1400),
    "ragas.answer_relevancy": JudgeCalls(3, 0, 800),
    "ragas.context_precision": JudgeCalls(0, 1, 1700),
    "ragas.context_utilization": JudgeCalls(0, 1, 1700),
    "ragas.context_recall": JudgeCalls(1, 0, 2400),
    "ragas.context_entity_recall": JudgeCalls(2, 0, 1000),
    "ragas.context_relevance": JudgeCalls(2, 0, 900),
    "ragas.noise_sensitivity": JudgeCalls(3, 2, 1300),
    "ragas.noise_sensitivity_irrelevant": JudgeCalls(3, 2, 1300),
    "ragas.answer_correctness": JudgeCalls(3, 0, 2300),
    "ragas.answer_accuracy": JudgeCalls(2, 0, 1000),
    "ragas.factual_correctness": JudgeCalls(4, 0, 1300),
    "ragas.factual_correctness_precision": JudgeCalls(2, 0, 1300),
    "ragas.factual_correctness_recall": JudgeCalls(4, 0, 1300),
    "ragas.response_groundedness": JudgeCalls(2, 0, 900),
}
