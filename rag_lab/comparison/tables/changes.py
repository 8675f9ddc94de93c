"""What each variant changes against the baseline, question by question and in total. Different is not better."""

import re
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from statistics import fmean

from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.evaluation.metric import Tools
from rag_lab.evaluation.registry import build_metric
from rag_lab.evaluation.trace_measures import normalize, token_f1
from rag_lab.records import Trace

PERSISTENCE = 0.9  # the first ten ranks have 86% of the weight (Webber et al. 2010, section 4.4)
TOP = 5  # what is shared of, where the baseline's configuration does not say how many passages are read
SAME = 1 - 1e-9  # an overlap above it is rounding
_MARKS = re.compile(r"\[\d+\]")
_CUTS = re.compile(r"corpus\.|retrieval\.level$|splitter$|file_readers$")  # settings with which passages are others


def rank_biased_overlap(
    first: Sequence[Hashable], second: Sequence[Hashable], persistence: float = PERSISTENCE
) -> float:
    """Return the extrapolated rank-biased overlap of two rankings, best first: 1 the same, 0 nothing in common.

    Webber, Moffat and Zobel (2010), A similarity measure for indefinite rankings, equation 32: the mean overlap of the
    two tops over all depths, where depth d + 1 weighs `persistence` times depth d, and the lists go on as they were
    seen. So a list and its own beginning have 1. Two empty lists have 1, an empty one and another 0. What is named
    twice in a list stands at its first place.
    """
    short, long = sorted((list(dict.fromkeys(first)), list(dict.fromkeys(second))), key=len)
    if not short:
        return float(not long)
    of_short, of_long = set[Hashable](), set[Hashable]()
    overlap = at_end_of_short = 0
    total, weight = 0.0, 1.0
    for depth, one in enumerate(long, start=1):
        of_long.add(one)
        if depth <= len(short):
            other = short[depth - 1]
            of_short.add(other)
            overlap += (other in of_long) + (other != one and one in of_short)
            at_end_of_short = overlap
            total += overlap / depth * weight
        else:
            overlap += one in of_short
            beyond = at_end_of_short * (depth - len(short)) / len(short)
            total += (overlap + beyond) / depth * weight
        weight *= persistence
    rest = (overlap - at_end_of_short) / len(long) + at_end_of_short / len(short)
    return min(1.0, (1 - persistence) * total + rest * weight)


def shared_at(first: Sequence[Hashable], second: Sequence[Hashable], k: int) -> float:
    """Return the share of the top `k` that both rankings have, of the longer of the two tops; 1 where both are empty.

    Example:
        >>> shared_at("abc", "bcd", 2)
        0.5
    """
    one, other = set(list(dict.fromkeys(first))[:k]), set(list(dict.fromkeys(second))[:k])
    longest = max(len(one), len(other))
    return len(one & other) / longest if longest else 1.0


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """What one variant changed of one question, in one repeat."""

    question_id: str
    variant_id: str
    overlap: float | None  # of the two rankings, 1 where they are the same; None where one of them is not there
    shared: float | None  # of their tops
    answer: float | None  # share of the words that differ, by 1 - F1; None where one of the answers is not there
    answer_differs: bool = False  # also where the words are the same and their order is not

    @property
    def size(self) -> float:
        """How much changed, 0 to 1: the mean of what can be told of ranking and answer."""
        known = [part for part in (None if self.overlap is None else 1 - self.overlap, self.answer) if part is not None]
        return fmean(known) if known else 0.0


@dataclass(frozen=True, slots=True)
class VariantChange:
    """What one variant changed over all questions, and what it takes; a mean is None where there is nothing."""

    variant_id: str
    rankings: int  # compared with the baseline's, each question in each repeat
    rankings_changed: int
    overlap: float | None  # mean rank-biased overlap
    shared: float | None  # mean share of the top k
    by_page: bool  # whether pages were ranked in place of passages, since the documents are cut otherwise
    answers: int  # compared
    answers_changed: int
    words: float | None  # mean share of words that differ, in the answers that changed
    answered: int  # questions with an answer, abstentions included
    abstained: int
    citations_valid: float | None  # mean of `citations.validity` over the answers that cite
    cites: int  # these
    seconds: float | None  # of a question, median
    tokens: float | None  # of a question, mean
    cost_usd: float | None  # of a question, mean


Changed = tuple[str, str, str, str, str]  # variant, question, both answers, and what the first is out of date by


def changed_answers(name: str, before: Sequence[Trace], after: Sequence[Trace]) -> list[Changed]:
    """Return the answers that are others later, each with the file by which the first is out of date, or ''.

    It is where words that it cites stand no more in what was read later of that file.
    """
    found, later = [], {(one.question.question_id, one.repeat): one for one in after}
    for one in before:
        other = later.get((one.question.question_id, one.repeat))
        if other is None or one.answer is None or other.answer is None or one.answer.text == other.answer.text:
            continue
        read: dict[str, str] = {}
        for passage in other.passages:
            read[passage.source] = f"{read.get(passage.source, '')} {' '.join(passage.text.split())}"
        cited = ((quoted.source, " ".join(quoted.quote.split())) for quoted in one.answer.citations)
        old = next((source for source, quote in cited if source in read and quote not in read[source]), "")
        found.append((name, one.question.question_id, one.answer.text, other.answer.text, old))
    return found


@dataclass(frozen=True, slots=True)
class Changes:
    """What the variants of a run change. `variants` begins with the baseline, which is compared with nothing."""

    asked: int  # questions
    labelled: int  # of these
    k: int  # of `shared`
    variants: tuple[VariantChange, ...]
    questions: tuple[QuestionChange, ...]  # the largest change first
    most: tuple[QuestionChange, ...]  # of each question that any variant changes its largest change, likewise
    states: tuple[Changed, ...] = ()  # answers from older documents (`corpus.folder`) that the last state changes


def what_changed(tables: RunTables) -> Changes:
    """Return what each variant that was run changes against the baseline, from the traces alone."""
    baseline, traces = tables.run.baseline, tables.traces
    config = tables.run.config(baseline)
    k = TOP if config is None else config.rerank.final_k
    cuts = {
        plan.variant_id: {key: str(value) for key, value in plan.changes.items() if _CUTS.match(key)}
        for plan in tables.variants
        if traces[plan.variant_id]
    }
    before = {(t.question.question_id, t.repeat): t for t in traces[baseline]}
    took = dict(zip(tables.latency["variant_id"], tables.latency["median_s"], strict=True))
    found: dict[str, list[QuestionChange]] = {}
    variants = []
    for variant in cuts:
        by_page = variant != baseline and baseline in cuts and cuts[variant] != cuts[baseline]
        pairs = [(before.get((t.question.question_id, t.repeat)), t) for t in traces[variant] if variant != baseline]
        found[variant] = [_question(variant, first, second, k, by_page) for first, second in pairs if first is not None]
        variants.append(_variant(variant, traces[variant], found[variant], by_page, took.get(variant)))
    questions = sorted((one for part in found.values() for one in part), key=lambda one: -one.size)
    largest = {one.question_id: one for one in reversed(questions)}
    ordered = (largest[name] for name in dict.fromkeys(one.question_id for one in questions))
    flat = {one: config.flat() for one, config in tables.pipelines.items()}
    last = {"corpus.folder": [*flat.values()][-1]["corpus.folder"]} if flat else {}
    twins = [(old, new) for old in flat for new in flat if old != new and flat[old] | last == flat[new]]
    states = [one for old, new in twins for one in changed_answers(old, traces[old], traces[new])]
    return Changes(
        asked=len(tables.asked),
        labelled=sum(question.is_labelled for question in tables.asked.values()),
        k=k,
        variants=tuple(variants),
        questions=tuple(questions),
        most=tuple(one for one in ordered if one.size or one.answer_differs),
        states=tuple(states),
    )


def answer_words(text: str) -> str:
    """Return what an answer says: its words, normalized, without the numbers of citations."""
    return normalize(_MARKS.sub(" ", text))


def _question(variant_id: str, before: Trace, now: Trace, k: int, by_page: bool) -> QuestionChange:
    overlap = shared = answer = None
    # A ranking that is missing is not one that is empty.
    if not any(not trace.ranked and trace.failure is not None for trace in (before, now)):
        first, second = (
            [(hit.source, hit.page) if by_page else hit.parent_id for hit in trace.ranked] for trace in (before, now)
        )
        overlap, shared = rank_biased_overlap(first, second), shared_at(first, second, k)
    differs = False
    if before.answer is not None and now.answer is not None:
        texts = before.answer.text, now.answer.text
        differs = answer_words(texts[0]) != answer_words(texts[1])
        answer = 1 - token_f1(*(_MARKS.sub(" ", text) for text in texts))
    return QuestionChange(now.question.question_id, variant_id, overlap, shared, answer, differs)


def _variant(
    variant_id: str, traces: Sequence[Trace], found: Sequence[QuestionChange], by_page: bool, seconds: float | None
) -> VariantChange:
    overlaps = [one.overlap for one in found if one.overlap is not None]
    changed = [one.answer for one in found if one.answer_differs and one.answer is not None]
    scores = build_metric("citations.validity", Tools()).score(traces)
    valid = [score.value for score in scores if score.value is not None]
    records = [trace.stages for trace in traces if trace.stages]
    answers = [trace.answer for trace in traces if trace.answer is not None]
    return VariantChange(
        variant_id=variant_id,
        rankings=len(overlaps),
        rankings_changed=sum(overlap < SAME for overlap in overlaps),
        overlap=_mean(overlaps),
        shared=_mean([one.shared for one in found if one.shared is not None]),
        by_page=by_page,
        answers=sum(one.answer is not None for one in found),
        answers_changed=len(changed),
        words=_mean(changed),
        answered=len(answers),
        abstained=sum(answer.abstained for answer in answers),
        citations_valid=_mean(valid),
        cites=len(valid),
        seconds=seconds,
        tokens=_mean([sum(one.tokens_in + one.tokens_out for one in some) for some in records]),
        cost_usd=_mean([sum(one.cost_usd for one in some) for some in records]),
    )


def _mean(values: Collection[float]) -> float | None:
    return fmean(values) if values else None
