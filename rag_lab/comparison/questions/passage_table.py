"""The passages of one question as a table: a row a passage, a column a ranking, shared by the variants that have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from rag_lab.evaluation.measures.coverage import covers
from rag_lab.records import Evidence, Hit, Question, Trace


class Rank(NamedTuple):
    """Where a passage stood: in the final ranking, or (`dropped`) among the candidates that the ranking left out."""

    rank: int
    in_context: bool = False
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One passage. `ranks` has one entry a column of the table, None where that ranking does not have it."""

    hit: Hit
    question: Question  # with its evidence located in the corpus as the variant that found the passage read it
    text: str  # in full; empty where the run holds none
    ranks: tuple[Rank | None, ...]

    @property
    def holds_evidence(self) -> bool:
        """Whether the passage holds any evidence of the question."""
        return holds_evidence(self.hit, self.question)


@dataclass(frozen=True, slots=True)
class Ranking:
    """All passages of a question. `missed` is the evidence that no variant found, not even as a candidate."""

    columns: tuple[tuple[str, ...], ...]  # letters of the variants that share the ranking
    rows: tuple[Row, ...]
    missed: tuple[Evidence, ...]


def ranking(runs: Sequence[tuple[str, Trace]], unread: Mapping[str, str] = MappingProxyType({})) -> Ranking:
    """Return the table for (letter, trace) pairs of one question; passages stand in order of their best rank.

    Where no variant gave a passage to a reader, `unread` holds its text by its id.
    """
    columns: dict[tuple[tuple[str, Rank], ...], list[str]] = {}
    found: dict[str, tuple[Hit, Question]] = {}
    texts: dict[str, str] = {}
    for letter, trace in runs:
        found |= {hit.parent_id: (hit, trace.question) for hit in (*trace.candidates, *trace.ranked)}
        texts |= {passage.parent_id: passage.retrieved for passage in trace.passages}
        columns.setdefault(tuple(_ranks(trace).items()), []).append(letter)
    rankings = [dict(key) for key in columns]
    shown = sorted({parent for one in rankings for parent in one}, key=lambda parent: _order(parent, rankings))
    rows = tuple(
        Row(*found[parent], texts.get(parent) or unread.get(parent, ""), tuple(one.get(parent) for one in rankings))
        for parent in shown
    )
    missed = _missed(runs, [hit for hit, _ in found.values()]) if runs else ()
    return Ranking(tuple(tuple(letters) for letters in columns.values()), rows, missed)


def unread_passages(traces: Sequence[Trace]) -> dict[str, Hit]:
    """Return what the table of passages shows of these traces and none of them holds the text of, by its id."""
    read = {passage.parent_id for trace in traces for passage in trace.passages}
    hits = {
        hit.parent_id: hit
        for trace in traces
        for shown in (_ranks(trace),)
        for hit in (*trace.candidates, *trace.ranked)
        if hit.parent_id not in read and hit.parent_id in shown
    }
    return dict(sorted(hits.items()))


def _ranks(trace: Trace) -> dict[str, Rank]:
    """Return the rank of every final hit, and of the evidence that was a candidate and did not make it."""
    context = {passage.parent_id for passage in trace.passages}
    final = {hit.parent_id: Rank(n, hit.parent_id in context) for n, hit in enumerate(trace.ranked, 1)}
    dropped = {
        hit.parent_id: Rank(n, dropped=True)
        for n, hit in enumerate(trace.candidates, 1)
        if hit.parent_id not in final and holds_evidence(hit, trace.question)
    }
    return final | dropped


def _order(parent: str, rankings: Sequence[dict[str, Rank]]) -> tuple[int, float, str]:
    ranks = [one[parent].rank + 1000 * one[parent].dropped for one in rankings if parent in one]
    return min(ranks), sum(ranks) / len(ranks), parent


def holds_evidence(hit: Hit, question: Question) -> bool:
    """Tell whether the parent holds any evidence of `question`, by the rule that the retrieval measures use."""
    return any(covers(hit, evidence) for evidence in question.evidence)


def _missed(runs: Sequence[tuple[str, Trace]], hits: Sequence[Hit]) -> tuple[Evidence, ...]:
    return tuple(one for one in runs[0][1].question.evidence if not any(covers(hit, one) for hit in hits))
