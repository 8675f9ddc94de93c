"""What of a passage can be quoted: its sentences, table rows and list items, and a few of them in a row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rag_lab.corpus.spans import Span, row_spans, sentence_units, trimmed

# A bullet, a number or a letter of a list, as `3.`, `(a)` or `2)`, where a line begins.
_MARK = re.compile(r"(?:[-*+•–]|\(?\d{1,3}[.)]|\(?[a-z][.)])(?=\s|$)")
_CELLS = re.compile(r"\S {2,}\S")  # the cells of a row of a PDF's table are two spaces apart


def quotable(text: str) -> list[Span]:
    """Return the spans of the sentences, table rows and list items of `text`, in order, without whitespace around."""
    rows = set(row_spans(text))
    units = [part for unit in sentence_units(text) for part in ([unit] if unit in rows else _lines(text, unit))]
    return _with_marks(text, trimmed(text, units))


def windows(units: Sequence[Span], longest: int) -> list[Span]:
    """Return every run of 1 to `longest` units that follow each other: the shorter ones first, each in order."""
    lengths = range(1, min(longest, len(units)) + 1)
    return [
        (units[first][0], units[first + length - 1][1])
        for length in lengths
        for first in range(len(units) - length + 1)
    ]


def _lines(text: str, unit: Span) -> Iterator[Span]:
    """Cut a sentence at the lines that are rows of a table without bars, and before those that begin a list item."""
    begin, place, is_after_row = unit[0], unit[0], False
    for line in text[slice(*unit)].splitlines(keepends=True):
        mark = _MARK.match(line.lstrip())
        is_row = bool(_CELLS.search(line.lstrip()[mark.end() :].strip() if mark else line))
        if (mark or is_row or is_after_row) and place > begin:
            yield begin, place
            begin = place
        place, is_after_row = place + len(line), is_row
    yield begin, unit[1]


def _with_marks(text: str, units: Sequence[Span]) -> list[Span]:
    """Put a list's marks that were taken for sentences before what they number."""
    found: list[Span] = []
    begin: int | None = None
    for start, end in units:
        if _MARK.fullmatch(text, start, end):
            begin = start if begin is None else begin
        else:
            found.append((start if begin is None else begin, end))
            begin = None
    return found
