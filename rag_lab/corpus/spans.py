"""Spans of a text: half-open, trimmed of whitespace, and those of the table rows, which no splitter cuts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Span = tuple[int, int]


def row_spans(text: str) -> list[Span]:
    """Return the half-open span of each table row in `text`, from its first bar to its last, in order."""
    return list(_rows(text)) if "|" in text else []


def _rows(text: str) -> Iterator[Span]:
    start = 0
    for line in text.split("\n"):
        bare = line.strip()
        if len(bare) > 1 and bare[0] == bare[-1] == "|":
            first = start + line.index("|")
            yield first, first + len(bare)
        start += len(line) + 1


def trim(text: str, start: int, end: int) -> Span:
    """Return the span without the whitespace at its ends; empty where there is nothing else."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def trimmed(text: str, spans: Iterable[Span]) -> list[Span]:
    """Return the spans without whitespace at their ends; blank ones are left out."""
    return [span for span in (trim(text, start, end) for start, end in spans) if span[0] < span[1]]
