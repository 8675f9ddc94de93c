"""The passages of one question as a table: a row a passage, a column a ranking, shared by the variants that have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rag_lab.evaluation.measures.retrieval import covers
from rag_lab.records import Evidence, Hit, Question, Trace

EXCERPT_CHARS = 160


@dataclass(frozen=True, slots=True)
class Rank:
    """Where a passage stood: in the final ranking, or (`dropped`) among the candidates that the ranking left out."""

    rank: int
    in_context: bool = False
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One passage. `ranks` has one entry a column of the table, None where that ranking does not have it."""

    source: str
    page: int | None
    holds_evidence: bool
    excerpt: str
    ranks: tuple[Rank | None, ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """All passages of a question. `missed` is the evidence that no variant found, not even as a candidate."""

    columns: tuple[tuple[str, ...], ...]  # letters of the variants that share the ranking
    rows: tuple[Row, ...]
    missed: tuple[Evidence, ...]


def ranking(runs: Sequence[tuple[str, Trace]], excerpts: Mapping[str, str] = MappingProxyType({})) -> Ranking:
    """Return the table for (letter, trace) pairs of one question; passages stand in order of their best rank.

    Where no variant gave a passage to a reader, `excerpts` tells by its id how it begins.
    """
    columns: dict[tuple[tuple[str, Rank], ...], list[str]] = {}
    hits: dict[str, Hit] = {}
    texts = dict(excerpts)
    for letter, trace in runs:
        hits |= {hit.parent_id: hit for hit in (*trace.candidates, *trace.ranked)}
        texts |= {passage.parent_id: passage.text for passage in trace.passages}
        columns.setdefault(tuple(_ranks(trace).items()), []).append(letter)
    rankings = [dict(key) for key in columns]
    shown = sorted({parent for one in rankings for parent in one}, key=lambda parent: _order(parent, rankings))
    rows = tuple(_row(hits[parent], runs[0][1], texts.get(parent, ""), rankings) for parent in shown) if runs else ()
    return Ranking(tuple(tuple(letters) for letters in columns.values()), rows, _missed(runs, list(hits.values())))


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


def _row(hit: Hit, trace: Trace, text: str, rankings: Sequence[dict[str, Rank]]) -> Row:
    ranks = tuple(one.get(hit.parent_id) for one in rankings)
    return Row(hit.source, hit.page, holds_evidence(hit, trace.question), excerpt(text), ranks)


def holds_evidence(hit: Hit, question: Question) -> bool:
    """Tell whether the parent holds any evidence of `question`, by the rule that the retrieval measures use."""
    return any(covers(hit, evidence) for evidence in question.evidence)


def excerpt(text: str) -> str:
    """Return the opening of a passage on one line."""
    line = " ".join(text[: 2 * EXCERPT_CHARS].split())
    return line if len(line) <= EXCERPT_CHARS else line[: EXCERPT_CHARS - 1].rstrip() + "…"


def _missed(runs: Sequence[tuple[str, Trace]], hits: Sequence[Hit]) -> tuple[Evidence, ...]:
    return tuple(one for one in runs[0][1].question.evidence if not any(covers(hit, one) for hit in hits))
