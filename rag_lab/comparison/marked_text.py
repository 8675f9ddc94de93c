"""The text of a passage in pieces: which of them are the evidence that a question asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from rag_lab.evaluation.measures.coverage import Placed, covers
from rag_lab.records import Evidence, Question

OPENING_CHARS = 220  # of a passage that stands folded
_BEFORE = 0.25  # of them, shown before evidence that stands further below
EXCERPT_CHARS = 160


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text; `is_evidence` where the quote of an evidence stands there."""

    text: str
    is_evidence: bool = False


def pieces(place: Placed, text: str, question: Question) -> tuple[Piece, ...]:
    """Return `text`, which stands at `place`, cut where evidence of `question` begins and ends; none of it is empty.

    Nothing is marked where the evidence has no quote or was not located, or where `text` is not what the document says
    there, as a context of somebody's own may change it.
    """
    spans = _spans(place, question.evidence) if len(text) == place.end - place.start else []
    found, end = [], 0
    for first, last in spans:
        found += [Piece(text[end:first]), Piece(text[first:last], is_evidence=True)]
        end = last
    return tuple(piece for piece in (*found, Piece(text[end:])) if piece.text)


def opening(parts: Sequence[Piece], chars: int = OPENING_CHARS) -> tuple[Piece, ...]:
    """Return at most `chars` characters on one line, with … where some are left out.

    They are the first ones; where the evidence stands further below, those around its beginning.
    """
    line = [Piece(re.sub(r"\s+", " ", part.text), part.is_evidence) for part in parts]
    before = sum(len(part.text) for part in takewhile(lambda part: not part.is_evidence, line))
    total = sum(len(part.text) for part in line)
    is_below = any(part.is_evidence for part in line) and before > chars * (1 - _BEFORE)
    start = max(0, min(before - round(chars * _BEFORE), total - chars)) if is_below else 0
    shown = _between(line, start, start + chars)
    head, tail = [Piece("… ")] * (start > 0), [Piece(" …")] * (start + chars < total)
    return (*head, *shown, *tail)


def excerpt(text: str, chars: int = EXCERPT_CHARS) -> str:
    """Return the opening of a text on one line, at most `chars` characters."""
    line = " ".join(text[: 2 * chars].split())
    return line if len(line) <= chars else line[: chars - 1].rstrip() + "…"


def _between(parts: Sequence[Piece], first: int, last: int) -> list[Piece]:
    """Return what stands from character `first` up to `last` of all pieces together."""
    found, place = [], 0
    for part in parts:
        text = part.text[max(first - place, 0) : max(last - place, 0)]
        place += len(part.text)
        found += [Piece(text, part.is_evidence)] if text else []
    return found


def _spans(place: Placed, evidence: Sequence[Evidence]) -> list[tuple[int, int]]:
    """Return where in the text at `place` quotes stand, in order; those that overlap or touch are one."""
    quoted = [(one.start, one.end) for one in evidence if covers(place, one) and one.start is not None]
    spans: list[tuple[int, int]] = []
    for start, end in sorted((start, end) for start, end in quoted if end is not None):
        first, last = max(start, place.start) - place.start, min(end, place.end) - place.start
        if spans and first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
        else:
            spans.append((first, last))
    return spans
