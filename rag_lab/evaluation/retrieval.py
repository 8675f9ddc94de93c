"""What places of a ranking hold the evidence, and measures of it: by rank, by ir_measures, at equal text, by repeats.

The unit of relevance is the evidence item. Going down the ranking, a hit is relevant where it covers an item that no
hit above it covers; the relevant units of a question are these hits and the items that no hit covers, so the ideal
ranking of nDCG counts what was not found. A file or page that a label names without words takes one rank, however many
hits of it there are: see `Counted`. A unit has the grade of its item, the highest where it covers several;
only measures that know grades, as nDCG, tell them apart. Files that read the same are one, and so are labels of one
passage.

By text the ranking is read from the top until the budget is full; a token is four characters (docs/measuring.md says
why). The passage that crosses the border is cut there. Where the place of the evidence is known, the part that was read
has to cover it. Where only its page or file is known, the passage counts if at least half of it was read: so a budget
holds on average as many passages as its text amounts to.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from rag_lab.data.labels import distinct
from rag_lab.evaluation import metric
from rag_lab.records import Evidence, Hit, Passage, Score, Trace


@dataclass(frozen=True, slots=True)
class Part:
    """A span of a document, such as what of a hit was read; `is_most` where that is at least half of it."""

    source: str
    page: int | None
    start: int
    end: int
    is_most: bool = True


Placed = Hit | Passage | Part  # a span of a document: characters `start` to one before `end`


def covers(place: Placed, evidence: Evidence) -> bool:
    """Tell whether `place` holds the evidence, or a part of it.

    Where the quote's span is known, the spans must overlap on the same page: of a quote that is split over two
    parents, either counts. Evidence with a span and no page stands in a file that is one text, whatever page the place
    begins on. Else the page must be the same; else, where no page is known, the file.
    """
    if place.source != evidence.source and place.source not in evidence.copies:
        return False
    if evidence.start is not None and evidence.end is not None:
        return evidence.page in (None, place.page) and place.start < evidence.end and evidence.start < place.end
    return evidence.page is None or place.page == evidence.page


def first_ranks(hits: Sequence[Hit], evidence: Sequence[Evidence]) -> list[int | None]:
    """Return, for each evidence item, the rank (from 1) of the first hit that covers it, or None."""
    return [next((rank for rank, hit in enumerate(hits, 1) if covers(hit, item)), None) for item in evidence]


@dataclass(frozen=True, slots=True)
class Counted:
    """A ranking counted in the places that labels tell apart: the rank (from 1) of each item, None where it is missing.

    `n` is how many ranks there are. A ranking of pages knows of a file no more than one of whole files, and has more
    hits: so a hit takes no rank where all that it covers stands above it and is no quote. One that covers nothing takes
    none where labels name files alone and its file stands above it, or where they name pages and its page does.
    """

    ranks: tuple[int | None, ...]
    n: int


def counted_ranks(hits: Sequence[Hit], evidence: Sequence[Evidence]) -> Counted:
    """Return at which rank each evidence item of a question is found, hits counted as finely as its labels are."""
    ranks: list[int | None] = [None] * len(evidence)
    seen, n = set[Hashable](), 0
    # What tells hits apart that cover nothing: the finest that a label names.
    by_quote = any(map(is_quote, evidence))
    by_page = any(item.page is not None or item.start is not None for item in evidence)
    for hit in hits:
        covered = [number for number, item in enumerate(evidence) if covers(hit, item)]
        new = [number for number in covered if ranks[number] is None]
        place: Hashable = (hit.source, hit.page) if by_page else hit.source
        if by_quote:
            place = (hit.parent_id, hit.span)
        if new or any(is_quote(evidence[number]) for number in covered) or not (covered or place in seen):
            n += 1
        seen.add(place)
        for number in new:
            ranks[number] = n
    return Counted(tuple(ranks), n)


def is_quote(item: Evidence) -> bool:
    """Tell whether the words of an item are known; a page of a file that is one text has a span without words."""
    return item.quote is not None and item.start is not None


_NEEDS: metric.Needs = frozenset({"ranking", "evidence"})
_EVIDENCE_RECALL = "evidence_recall"
STABILITY = "retrieval.stability@k"
ASKED_ONCE = metric.Gap("not_applicable", "two repeats of a question are compared, and it has one; set repeats to 2")
# Our name -> ir_measures' name.
_MEASURES = {"ndcg": "nDCG", "mrr": "RR", "map": "AP", "recall": "R", "precision": "P", "success": "Success"}
CHARACTERS_A_TOKEN = 4
TEXT_INFOS = tuple(
    metric.info_of(f"retrieval.{name}{metric.IN_TOKENS}", _NEEDS) for name in (_EVIDENCE_RECALL, "recall", "success")
)
INFOS = (
    *(metric.info_of(f"retrieval.{name}@k", _NEEDS) for name in (*_MEASURES, _EVIDENCE_RECALL)),
    *TEXT_INFOS,
    metric.info_of(STABILITY, frozenset({"ranking"})),
    metric.info_of("retrieval.<measure>", _NEEDS, high=None),
)

# Of each item: whether it was read, and the rank of the first hit of the whole ranking that covers it.
_Measure = Callable[[Sequence[bool], Sequence[int | None]], float]
_Items = Sequence[tuple[int | None, int]]  # of each evidence item: the rank where it was found, and its grade


def _measured(trace: Trace, measure: _Measure, n_tokens: int) -> float | metric.Gap:
    parts, left = list[Part](), n_tokens * CHARACTERS_A_TOKEN
    for hit in trace.ranked:  # what of each is read, best first, until that is full; text of two hits counts twice
        size = hit.end - hit.start
        read = min(size, left)
        if not read:
            break
        parts.append(Part(hit.source, hit.page, hit.start, hit.start + read, is_most=2 * read >= size))
        left -= read
    evidence = distinct(trace.question.evidence)
    found = [
        any(covers(part, item) and (item.start is not None or part.is_most) for part in parts) for item in evidence
    ]
    return measure(found, first_ranks(trace.ranked, evidence))


def _recall(found: Sequence[bool], ranks: Sequence[int | None]) -> float:
    """Items that one hit of the whole ranking is the first to cover are one unit, as in recall by rank."""
    units = [f"missing-{number}" if rank is None else str(rank) for number, rank in enumerate(ranks)]
    return len({unit for unit, one in zip(units, found, strict=True) if one}) / len(set(units))


_TEXT_COMPUTE: dict[str, _Measure] = {
    "evidence_recall": lambda found, ranks: sum(found) / len(found),
    "recall": _recall,
    "success": lambda found, ranks: float(any(found)),
}


@dataclass(frozen=True)
class RetrievalMetric:
    """One measure, by its name in ir_measures; where `by_item`, the mean of its values for each evidence item alone."""

    name: str
    measure: str
    by_item: bool = False
    needs: metric.Needs = _NEEDS

    def score(self, traces: Sequence[Trace]) -> list[Score]:
        """Return one score for each trace, in order; all are computed in one call of ir_measures."""
        gaps = [metric.find_gap(trace, self.needs) for trace in traces]
        values = iter(self._values_or_gap([trace for trace, gap in zip(traces, gaps, strict=True) if gap is None]))
        return [metric.scored(trace, self.name, gap or next(values)) for trace, gap in zip(traces, gaps, strict=True)]

    def _values_or_gap(self, traces: Sequence[Trace]) -> Sequence[float | metric.Gap]:
        """Return the values; what breaks in one of the packages behind ir_measures costs this measure alone."""
        items, n_hits = [], []
        for trace in traces:
            evidence = distinct(trace.question.evidence)
            counted = counted_ranks(trace.ranked, evidence)
            items.append([(rank, item.grade) for rank, item in zip(counted.ranks, evidence, strict=True)])
            n_hits.append(counted.n)
        try:
            if not self.by_item:
                return _calculate(self.measure, items, n_hits)
            # Each item is a topic of its own, since two items may share a hit.
            alone = [[item] for of_question in items for item in of_question]
            lengths = [n for n, of_question in zip(n_hits, items, strict=True) for _ in of_question]
            found = iter(_calculate(self.measure, alone, lengths))
            return [sum(next(found) for _ in of_question) / len(of_question) for of_question in items]
        except Exception as error:
            reason = f"ir_measures gave up: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
            return [metric.Gap("failed", reason)] * len(traces)


@dataclass(frozen=True)
class StabilityMetric:
    """How much of the first k hits the repeats of a question share: a value of the question, the same for each repeat.

    A hit is its span. Two repeats that find nothing have found the same.
    """

    name: str
    k: int
    needs: metric.Needs = frozenset({"ranking"})

    def score(self, traces: Sequence[Trace]) -> list[Score]:
        """Return one score for each trace, in order; a repeat that failed is in no pair."""
        gaps = [metric.find_gap(trace, self.needs) for trace in traces]
        found: dict[str, list[set[Hashable]]] = {}
        for trace, gap in zip(traces, gaps, strict=True):
            if gap is None:
                found.setdefault(trace.question.question_id, []).append({hit.span for hit in trace.ranked[: self.k]})
        values: dict[str, float | metric.Gap] = {}
        for question, sets in found.items():
            overlaps = [len(a & b) / len(a | b) if a | b else 1.0 for a, b in combinations(sets, 2)]
            values[question] = sum(overlaps) / len(overlaps) if overlaps else ASKED_ONCE
        scored = zip(traces, gaps, strict=True)
        return [metric.scored(one, self.name, gap or values[one.question.question_id]) for one, gap in scored]


def build(name: str, info: metric.MetricInfo, argument: str, tools: metric.Tools) -> metric.Metric:
    """Return the measure called `name`; `argument` is its cut-off, its tokens, or its own name in ir_measures."""
    if info in TEXT_INFOS:
        measure = _TEXT_COMPUTE[info.name.removeprefix("retrieval.").removesuffix(metric.IN_TOKENS)]
        return metric.TraceMetric(name, info.needs, partial(_measured, measure=measure, n_tokens=int(argument)))
    ours = info.name.removeprefix("retrieval.").removesuffix("@k")
    if info.name == STABILITY:
        return StabilityMetric(name, int(argument))
    if ours == _EVIDENCE_RECALL:
        return RetrievalMetric(name, f"R@{argument}", by_item=True)
    return RetrievalMetric(name, f"{_MEASURES[ours]}@{argument}" if ours in _MEASURES else argument)


def _calculate(measure: str, items: Sequence[_Items], n_hits: Sequence[int]) -> list[float]:
    """Return the measure of each topic, in order, by its evidence items.

    A topic without hits has the value that ir_measures defines for it, which not all packages behind it give.
    """
    import ir_measures

    parsed = ir_measures.parse_measure(measure)
    topics = {str(topic): (of_topic, n) for topic, (of_topic, n) in enumerate(zip(items, n_hits, strict=True)) if n}
    qrels: dict[str, dict[str, int]] = {}
    for topic, (of_topic, n) in topics.items():
        grades = qrels[topic] = {str(rank): 0 for rank in range(1, n + 1)}  # no hit is without a judgement
        for number, (rank, grade) in enumerate(of_topic):
            unit = f"missing-{number}" if rank is None else str(rank)
            grades[unit] = max(grade, grades.get(unit, 0))
    run = {topic: {str(rank): float(-rank) for rank in range(1, n + 1)} for topic, (_, n) in topics.items()}
    values = {row.query_id: row.value for row in ir_measures.iter_calc([parsed], qrels, run)} if topics else {}
    return [float(values.get(str(topic), parsed.DEFAULT)) for topic in range(len(items))]


FAMILY = metric.Family(INFOS, build)
