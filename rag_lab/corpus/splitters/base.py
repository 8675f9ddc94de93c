"""The contract of a splitter, and what all of them do with a span."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from rag_lab.corpus.tables import Span


class Splitter(Protocol):
    """Cuts texts into pieces. The constructor only stores parameters."""

    def identity(self) -> Mapping[str, Any]:
        """Whatever changes where a text is cut, as JSON values."""

    def split(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return for each text the half-open spans of its pieces, in order of their start.

        Pieces neither begin nor end with whitespace, and none is blank. Together they hold every character that is not
        whitespace. No piece begins or ends within a table row (`tables.row_spans`); a row longer than the size of a
        piece is a piece of its own.
        """


def trim(text: str, start: int, end: int) -> Span:
    """Return the span without the whitespace at its ends; empty where there is nothing else."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def trimmed(text: str, spans: Iterable[Span]) -> list[Span]:
    """Return the spans without whitespace at their ends; blank ones are left out."""
    return [span for span in (trim(text, start, end) for start, end in spans) if span[0] < span[1]]
