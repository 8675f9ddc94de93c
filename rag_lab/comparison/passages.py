"""The passages of questions: their ranks under each variant, their texts, and where the evidence stands in them."""

import re
from collections import UserDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from types import MappingProxyType
from typing import NamedTuple

from rag_lab.evaluation.retrieval import Placed, covers
from rag_lab.records import Evidence, Hit, Question, Span, Trace
from rag_lab.runs.run_folder import RunFolder

OPENING_CHARS = 220  # of a passage that stands folded
_BEFORE = 0.25  # of them, shown before evidence that stands further below
EXCERPT_CHARS = 160


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text; `marked` is what is to be seen in it, such as the quote of an evidence."""

    text: str
    marked: bool = False


def pieces(place: Placed, text: str, question: Question) -> tuple[Piece, ...]:
    """Return `text`, which stands at `place`, cut where evidence of `question` begins and ends; none of it is empty.

    Nothing is marked where the evidence has no quote or was not located, or where `text` is not what the document says
    there, as a context of somebody's own may change it.
    """
    spans: list[tuple[int, int]] = []  # where quotes stand in the text, in order; those that overlap or touch are one
    quoted = [(one.start, one.end) for one in question.evidence if covers(place, one) and one.start is not None]
    if len(text) == place.end - place.start:
        for start, end in sorted((start, end) for start, end in quoted if end is not None):
            first, last = max(start, place.start) - place.start, min(end, place.end) - place.start
            if spans and first <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
            else:
                spans.append((first, last))
    found, end_of_last = [], 0
    for first, last in spans:
        found += [Piece(text[end_of_last:first]), Piece(text[first:last], marked=True)]
        end_of_last = last
    return tuple(piece for piece in (*found, Piece(text[end_of_last:])) if piece.text)


def opening(parts: Sequence[Piece], chars: int = OPENING_CHARS) -> tuple[Piece, ...]:
    """Return at most `chars` characters on one line, with … where some are left out.

    They are the first ones; where the evidence stands further below, those around its beginning.
    """
    line = [Piece(re.sub(r"\s+", " ", part.text), part.marked) for part in parts]
    before = sum(len(part.text) for part in takewhile(lambda part: not part.marked, line))
    total = sum(len(part.text) for part in line)
    is_below = any(part.marked for part in line) and before > chars * (1 - _BEFORE)
    start = max(0, min(before - round(chars * _BEFORE), total - chars)) if is_below else 0
    shown, place = [Piece("… ")] * (start > 0), 0
    for part in line:
        text = part.text[max(start - place, 0) : max(start + chars - place, 0)]
        place += len(part.text)
        shown += [Piece(text, part.marked)] if text else []
    return (*shown, *([Piece(" …")] * (start + chars < total)))


def excerpt(text: str, chars: int = EXCERPT_CHARS) -> str:
    """Return the opening of a text on one line, at most `chars` characters."""
    line = " ".join(text[: 2 * chars].split())
    return line if len(line) <= chars else line[: chars - 1].rstrip() + "…"


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
    places: dict[str, list[int]] = {}
    for parent, rank in (item for one in rankings for item in one.items()):
        places.setdefault(parent, []).append(rank.rank + 1000 * rank.dropped)
    by = {parent: (min(ranks), sum(ranks) / len(ranks), parent) for parent, ranks in places.items()}
    shown = sorted(places, key=by.__getitem__)
    rows = tuple(
        Row(*found[parent], texts.get(parent) or unread.get(parent, ""), tuple(one.get(parent) for one in rankings))
        for parent in shown
    )
    labelled = runs[0][1].question.evidence if runs else ()
    missed = tuple(one for one in labelled if not any(covers(hit, one) for hit, _ in found.values()))
    return Ranking(tuple(tuple(letters) for letters in columns.values()), rows, missed)


def passages_without_text(traces: Sequence[Trace]) -> dict[str, Hit]:
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


def holds_evidence(hit: Hit, question: Question) -> bool:
    """Tell whether the parent holds any evidence of `question`, by the rule that the retrieval measures use."""
    return any(covers(hit, evidence) for evidence in question.evidence)


class RunTexts(UserDict[Span, str]):
    """The texts of ranked hits by where they stand, as far as any variant of the run kept or read them."""

    def __init__(self, run: RunFolder, traces: Mapping[str, list[Trace]]) -> None:
        self._run, self._traces = run, traces

    @cached_property
    def data(self) -> dict[Span, str]:  # type: ignore[override]
        """All of them, read when the first is wanted."""
        traces = [trace for some in self._traces.values() for trace in some]
        read = {passage.parent_id: passage.retrieved for trace in traces for passage in trace.passages}
        known = self._run.passages() | read
        return {hit.span: known[hit.parent_id] for trace in traces for hit in trace.ranked if hit.parent_id in known}
