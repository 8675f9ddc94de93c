"""Which places of a ranking hold the evidence: the rule that all measures of retrieval and citations share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rag_lab.records import Evidence, Hit


class Placed(Protocol):
    """A span of a document: a hit or a passage."""

    @property
    def source(self) -> str:
        """The file."""

    @property
    def page(self) -> int | None:
        """The page, from 1; None where the file has none."""

    @property
    def start(self) -> int:
        """First character in the document."""

    @property
    def end(self) -> int:
        """One past the last character."""


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
