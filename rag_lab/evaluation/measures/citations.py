"""Citation checks: do the citations of an answer lead to the evidence?

Citations of one passage count once, and so do equal citations of something that was not in the context.
"""

from rag_lab.data.labels import distinct
from rag_lab.evaluation.measures.coverage import covers
from rag_lab.evaluation.metric import NOTHING_TO_READ, OF_LABELS, Gap, MetricInfo, Needs, family_of
from rag_lab.records import Answer, Passage, Trace

_NO_CITATION = Gap("not_applicable", "the answer cites nothing")
_WITH_EVIDENCE: Needs = frozenset({"answer", "evidence"})
_OF_ANSWER: Needs = frozenset({"answer"})
_PRECISION = "Share of the citations made that name a passage of the context which covers an evidence item."
_RECALL = "Share of the evidence items of which a covering passage was cited."
_VALIDITY = "Share of the citations made that name a passage of the context at all."
_QUOTES = "Share of the quotes of citations that stand in the passage they cite, white space aside."


def _precision(trace: Trace) -> float | Gap:
    evidence = trace.question.evidence
    if trace.reads_labels and all(any(covers(passage, item) for item in evidence) for passage in trace.passages):
        return OF_LABELS  # whatever is cited is evidence
    cited, n_made = _citations(trace)
    supporting = [passage for passage in cited if any(covers(passage, item) for item in evidence)]
    return len(supporting) / n_made if n_made else _NO_CITATION


def _recall(trace: Trace) -> float | Gap:
    if trace.has_nothing_to_read:
        return NOTHING_TO_READ
    evidence = distinct(trace.question.evidence)
    if trace.reads_labels and all(covers(passage, item) for item in evidence for passage in trace.passages):
        return OF_LABELS  # whatever is cited is all of the evidence
    cited, _ = _citations(trace)
    return sum(any(covers(passage, item) for passage in cited) for item in evidence) / len(evidence)


def _validity(trace: Trace) -> float | Gap:
    cited, n_made = _citations(trace)
    return len(cited) / n_made if n_made else _NO_CITATION


def _quotes_verified(trace: Trace) -> float | Gap:
    answer = trace.answer or Answer("")
    quoted = [citation for citation in answer.citations if citation.quote.strip()]
    if not quoted:
        return Gap("not_applicable", "no citation quotes anything")
    texts = {passage.number: _squeezed(passage.retrieved) for passage in trace.passages}
    return sum(_squeezed(each.quote) in texts.get(each.number, "") for each in quoted) / len(quoted)


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _citations(trace: Trace) -> tuple[list[Passage], int]:
    """Return the cited passages and how many different citations were made, rejected ones included."""
    answer = trace.answer or Answer("")
    numbers = {citation.number for citation in answer.citations}
    return [p for p in trace.passages if p.number in numbers], len(numbers) + len(set(answer.rejected_citations))


FAMILY = family_of(
    (MetricInfo("citations.precision", _PRECISION, _WITH_EVIDENCE), _precision, 2),
    (MetricInfo("citations.recall", _RECALL, _WITH_EVIDENCE), _recall, 3),
    (MetricInfo("citations.validity", _VALIDITY, _OF_ANSWER), _validity, 1),
    (MetricInfo("citations.quotes_verified", _QUOTES, _OF_ANSWER), _quotes_verified, 1),
)
