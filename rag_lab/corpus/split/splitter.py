"""The contract of a splitter, and what all of them do with a span."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rag_lab.corpus.spans import Span


@dataclass(frozen=True, slots=True)
class Unsplit:
    """Why a text could not be split; what is split of others stays."""

    reason: str


class Splitter(Protocol):
    """Cuts texts into pieces. The constructor only stores parameters."""

    def identity(self) -> Mapping[str, Any]:
        """Whatever changes where a text is cut, as JSON values."""

    def split(self, texts: Sequence[str]) -> Sequence[list[Span] | Unsplit]:
        """Return for each text the half-open spans of its pieces, in order of their start; ours always can.

        Pieces neither begin nor end with whitespace, and none is blank. Together they hold every character that is not
        whitespace. No piece begins or ends within a table row (`tables.row_spans`); a row longer than the size of a
        piece is a piece of its own. Splitters that others bring are not held to the last two: what they leave out and
        which rows they cut is said (`own_splitter`).
        """
