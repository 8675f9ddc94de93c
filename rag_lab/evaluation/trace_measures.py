"""Measures that are functions of one trace: its answer, its citations, what its asker may not see, and what it took.

Answers are compared with references as SQuAD does it (Rajpurkar et al. 2016). As in SQuAD 2.0 (Rajpurkar et al. 2018),
who abstains says nothing: the words that say so are not compared.

Citations of one passage count once, and so do equal citations of something that was not in the context.
"""

import re
import string
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any

from rag_lab._kit.machine import NO_METER
from rag_lab.data.labels import distinct
from rag_lab.evaluation import metric
from rag_lab.evaluation.retrieval import covers
from rag_lab.records import Answer, MachineUse, Passage, StageRecord, Trace

_OF_ANSWER: metric.Needs = frozenset({"answer"})
_WITH_REFERENCE: metric.Needs = frozenset({"answer", "reference"})
_WITH_EVIDENCE: metric.Needs = frozenset({"answer", "evidence"})
_NO_CITATION = metric.Gap("not_applicable", "the answer cites nothing")
NOT_HERE = metric.Gap("not_applicable", "no chat model of this machine was asked, or what it took was not measured")
_NO_RULES = metric.Gap(
    "failed", "nothing says whose the files are: give `visible`, as a sweep does from attributes.yaml"
)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(text: str) -> str:
    """Lower the case, drop ASCII punctuation and English articles, and squeeze white space.

    Example:
        >>> normalize("The  Oven's timer.")
        'ovens timer'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def token_f1(answer: str, reference: str) -> float:
    """Return the F1 of the words that both share, as multisets; 1 where both are empty after normalization."""
    ours, wanted = normalize(answer).split(), normalize(reference).split()
    if not ours or not wanted:
        return float(ours == wanted)
    shared = sum((Counter(ours) & Counter(wanted)).values())
    return 2 * shared / (len(ours) + len(wanted))


def _against_references(trace: Trace, compare: Callable[[str, str], float]) -> float:
    """Return how near the answer comes to the best reference; 0 where the reader abstained."""
    answer = _answer(trace)
    return 0.0 if answer.abstained else max(compare(answer.text, reference) for reference in trace.question.answers)


def _answer(trace: Trace) -> Answer:
    return trace.answer or Answer("")


ANSWERS = metric.family_of(
    (
        metric.info_of("answer.exact_match", _WITH_REFERENCE),
        partial(_against_references, compare=lambda ours, wanted: float(normalize(ours) == normalize(wanted))),
    ),
    (metric.info_of("answer.token_f1", _WITH_REFERENCE), partial(_against_references, compare=token_f1)),
    (
        metric.info_of("answer.abstention", _OF_ANSWER),
        lambda trace: (
            metric.NOTHING_TO_READ
            if trace.has_nothing_to_read
            else float(_answer(trace).abstained != trace.question.answerable)
        ),
    ),
    (
        metric.info_of("answer.words", _OF_ANSWER, high=None, higher_is_better=False, is_cost=True),
        lambda trace: float(len(_answer(trace).text.split())),
    ),
)


def _share_cited(trace: Trace, counts: Callable[[Passage], bool]) -> float | metric.Gap:
    """Return the share of the citations made that name a passage of the context which `counts`."""
    cited, n_made = _citations(trace)
    return sum(map(counts, cited)) / n_made if n_made else _NO_CITATION


def _precision(trace: Trace) -> float | metric.Gap:
    evidence = trace.question.evidence
    if trace.reads_labels and all(any(covers(passage, item) for item in evidence) for passage in trace.passages):
        return metric.OF_LABELS  # whatever is cited is evidence
    return _share_cited(trace, lambda passage: any(covers(passage, item) for item in evidence))


def _recall(trace: Trace) -> float | metric.Gap:
    if trace.has_nothing_to_read:
        return metric.NOTHING_TO_READ
    evidence = distinct(trace.question.evidence)
    if trace.reads_labels and all(covers(passage, item) for item in evidence for passage in trace.passages):
        return metric.OF_LABELS  # whatever is cited is all of the evidence
    cited, _ = _citations(trace)
    return sum(any(covers(passage, item) for passage in cited) for item in evidence) / len(evidence)


def _quotes_verified(trace: Trace) -> float | metric.Gap:
    quoted = [citation for citation in _answer(trace).citations if citation.quote.strip()]
    if not quoted:
        return metric.Gap("not_applicable", "no citation quotes anything")
    texts = {passage.number: " ".join(passage.retrieved.split()) for passage in trace.passages}
    return sum(" ".join(each.quote.split()) in texts.get(each.number, "") for each in quoted) / len(quoted)


def _citations(trace: Trace) -> tuple[list[Passage], int]:
    """Return the cited passages and how many different citations were made, rejected ones included."""
    answer = _answer(trace)
    numbers = {citation.number for citation in answer.citations}
    return [p for p in trace.passages if p.number in numbers], len(numbers) + len(set(answer.rejected_citations))


CITATIONS = metric.family_of(
    (metric.info_of("citations.precision", _WITH_EVIDENCE), _precision),
    (metric.info_of("citations.recall", _WITH_EVIDENCE), _recall),
    (metric.info_of("citations.validity", _OF_ANSWER), lambda trace: _share_cited(trace, lambda _: True)),
    (metric.info_of("citations.quotes_verified", _OF_ANSWER), _quotes_verified),
)


def _share_closed(trace: Trace, visible: metric.Visible | None) -> float | metric.Gap:
    """Return the share of the files on a trace that `visible` closes to its asker; 0 where nothing was shown."""
    if visible is None:
        return _NO_RULES
    lists = (*trace.hits.values(), trace.base_hits, trace.candidates, trace.reranked, trace.ranked)
    items: tuple[Any, ...] = (*chain(*lists), *trace.passages, *(trace.answer.citations if trace.answer else ()))
    evidence = trace.question.evidence
    shown = {one.source for one in (*items, *evidence)} | {copy for item in evidence for copy in item.copies}
    return sum(not visible(trace.question, source) for source in shown) / len(shown) if shown else 0.0


def _forbidden_fact(trace: Trace) -> float:
    """Return whether a forbidden fact was told; facts are compared by their words."""
    answer, remembered = trace.answer or Answer(""), trace.remembered
    earlier = [turn.content for turn in remembered.turns if turn.role == "assistant"]
    quotes = [citation.quote for citation in answer.citations]
    told = f" {normalize(' '.join((answer.text, answer.thinking, *quotes, remembered.summary, *earlier)))} "
    return float(any(f" {normalize(fact)} " in told for fact in trace.question.forbidden))


# Whose the files are is read anew, by nobody whom the searches rely on.
ACCESS = metric.Family(
    (
        metric.info_of(
            "access.leak", frozenset({"ranking", "rights"}), higher_is_better=False, fields=frozenset({"ranked"})
        ),
        metric.info_of("access.told", frozenset({"answer", "forbidden"}), higher_is_better=False),
    ),
    lambda name, info, argument, tools: (
        metric.TraceMetric(name, info.needs, _forbidden_fact)
        if name == "access.told"
        else metric.TraceMetric(name, info.needs, partial(_share_closed, visible=tools.visible))
    ),
)


def _total(measure: Callable[[StageRecord], float], trace: Trace, stage: str) -> float | metric.Gap:
    """Return the sum over the records of one stage, or of all where `stage` is empty."""
    records = [record for record in trace.stages if not stage or record.stage == stage]
    if records:
        return sum(measure(record) for record in records)
    if trace.failure is not None:
        return metric.Gap("failed", f"{trace.failure.stage} failed: {trace.failure.reason}")
    return metric.Gap("not_applicable", f"stage {stage} has not run" if stage else "no stage has run")


def _tokens_per_second(trace: Trace, _: str) -> float | metric.Gap:
    wrote = [record for record in trace.stages if record.tokens_out]
    seconds = sum(record.seconds for record in wrote)
    if not seconds:
        return metric.Gap("not_applicable", "no chat model wrote anything")
    return sum(record.tokens_out for record in wrote) / seconds


def _sum_of_models(figure: Callable[[MachineUse], float | None], trace: Trace, _: str) -> float | metric.Gap:
    """Return the sum over models of a figure that a model has once, however many stages ask it: its largest."""
    largest: dict[str, float] = {}
    for record in trace.stages:
        value = None if record.machine is None else figure(record.machine)
        if value is not None:
            largest[record.model] = max(value, largest.get(record.model, 0.0))
    return sum(largest.values()) if largest else NOT_HERE


def _joules(trace: Trace, _: str) -> float | metric.Gap:
    uses = [record.machine for record in trace.stages if record.machine is not None]
    known = [use.joules for use in uses if use.joules is not None]
    return sum(known) if known else metric.Gap("not_applicable", NO_METER) if uses else NOT_HERE


# What each is, and how it follows from the records of the stages; the stage is empty but for costs of one.
_COSTS: dict[str, Callable[[Trace, str], float | metric.Gap]] = {
    "cost.seconds": partial(_total, lambda record: record.seconds),
    "cost.seconds.<stage>": partial(_total, lambda record: record.seconds),
    "cost.tokens": partial(_total, lambda record: record.tokens_in + record.tokens_out),
    "cost.thinking_tokens": partial(_total, lambda record: record.thinking_tokens),
    "cost.usd": partial(_total, lambda record: record.cost_usd),
    "cost.tokens_per_second": _tokens_per_second,
    "cost.load_seconds": partial(_sum_of_models, lambda use: use.load_s),
    "cost.memory_mb": partial(_sum_of_models, lambda use: use.memory_mb),
    "cost.joules": _joules,
}
COSTS = metric.Family(
    [
        metric.info_of(n, frozenset(), high=None, higher_is_better=n == "cost.tokens_per_second", is_cost=True)
        for n in _COSTS
    ],
    lambda name, info, argument, tools: metric.TraceMetric(
        name, info.needs, lambda trace: _COSTS[info.name](trace, argument)
    ),
)
