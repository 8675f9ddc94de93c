"""Retrieval at equal text: what a reader of the first n tokens of a ranking has found of the evidence.

At the same rank, passages of different size are different amounts of text: ten children are a third of ten pages. Here
the ranking is read from the top until the budget is full, whatever the passages are. A token is four characters, for
every variant and every model, so the measure needs no tokenizer, and no text beside the spans that a trace keeps.

The passage that crosses the border is cut there, as a reader with a limited context gets it. Where the place of the
evidence is known, the part that was read has to cover it. Where only its page or file is known, nobody knows on which
side of the cut it stands: the passage counts if at least half of it was read. Counted so, a budget holds on average as
many passages as its text amounts to; were any part enough it would hold up to one more, and one page more is more text
than one child more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rag_lab.data.evidence import distinct
from rag_lab.evaluation.measures.coverage import covers, first_ranks
from rag_lab.evaluation.metric import IN_TOKENS, Gap, Metric, MetricInfo, Needs, TraceMetric
from rag_lab.records import Evidence, Hit, Trace

CHARACTERS_A_TOKEN = 4
_NEEDS: Needs = frozenset({"ranking", "evidence"})
_SENTENCES = {
    "evidence_recall": "Share of the evidence items that the first n tokens of the ranking cover.",
    "recall": "Share of the relevant units that the first n tokens of the ranking hold.",
    "success": "1 where the first n tokens of the ranking cover an evidence item, else 0.",
}

INFOS = tuple(
    MetricInfo(f"retrieval.{name}{IN_TOKENS}", f"{sentence} A token is {CHARACTERS_A_TOKEN} characters.", _NEEDS)
    for name, sentence in _SENTENCES.items()
)

# Of each item: whether it was read, and the rank of the first hit of the whole ranking that covers it.
_Measure = Callable[[Sequence[bool], Sequence[int | None]], float]


@dataclass(frozen=True, slots=True)
class Part:
    """What of a hit is within the budget; `is_most` where that is at least half of it."""

    source: str
    page: int | None
    start: int
    end: int
    is_most: bool

    def covers(self, evidence: Evidence) -> bool:
        """Tell whether the evidence was read here."""
        return covers(self, evidence) and (evidence.start is not None or self.is_most)


def read_within(hits: Sequence[Hit], n_tokens: int) -> Iterator[Part]:
    """Yield what of each hit is read, best first, until `n_tokens` are full; text of two hits counts twice."""
    left = n_tokens * CHARACTERS_A_TOKEN
    for hit in hits:
        size = hit.end - hit.start
        read = min(size, left)
        if not read:
            return
        yield Part(hit.source, hit.page, hit.start, hit.start + read, is_most=2 * read >= size)
        left -= read


def build_equal_text(name: str, info: MetricInfo, n_tokens: int) -> Metric:
    """Return the measure called `name`, of the kind that `info` describes."""
    measure = _COMPUTE[info.name.removeprefix("retrieval.").removesuffix(IN_TOKENS)]
    return TraceMetric(name, info.needs, partial(_measured, measure=measure, n_tokens=n_tokens))


def _measured(trace: Trace, measure: _Measure, n_tokens: int) -> float | Gap:
    parts = list(read_within(trace.ranked, n_tokens))
    evidence = distinct(trace.question.evidence)
    found = [any(part.covers(item) for part in parts) for item in evidence]
    return measure(found, first_ranks(trace.ranked, evidence))


def _evidence_recall(found: Sequence[bool], ranks: Sequence[int | None]) -> float:
    return sum(found) / len(found)


def _recall(found: Sequence[bool], ranks: Sequence[int | None]) -> float:
    """Items that one hit of the whole ranking is the first to cover are one unit, as in recall by rank."""
    units = [f"missing-{number}" if rank is None else str(rank) for number, rank in enumerate(ranks)]
    return len({unit for unit, one in zip(units, found, strict=True) if one}) / len(set(units))


def _success(found: Sequence[bool], ranks: Sequence[int | None]) -> float:
    return float(any(found))


_COMPUTE: dict[str, _Measure] = {
    "evidence_recall": _evidence_recall,
    "recall": _recall,
    "success": _success,
}
