"""Which places of a ranking hold the evidence: the rule that all measures of retrieval and citations share."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from rag_lab.records import Evidence, Hit, Passage


@dataclass(frozen=True, slots=True)
class Part:
    """A span of a document, such as what of a hit was read; `is_most` where that is at least half of it."""

    source: str
    page: int | None
    start: int
    end: int
    is_most: bool = True


Placed = Hit | Passage | Part  # a span of a document: characters `start` to one before `end`


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


@dataclass(frozen=True, slots=True)
class Counted:
    """A ranking counted in the places that labels tell apart: the rank (from 1) of each item, None where it is missing.

    `n` is how many ranks there are. A ranking of pages knows of a file no more than one of whole files, and has more
    hits: so a hit takes no rank where all that it covers stands above it and is no quote. One that covers nothing takes
    none where labels name files alone and its file stands above it, or where they name pages and its page does.
    """

    ranks: tuple[int | None, ...]
    n: int


def counted_ranks(hits: Sequence[Hit], evidence: Sequence[Evidence]) -> Counted:
    """Return at which rank each evidence item of a question is found, hits counted as finely as its labels are."""
    ranks: list[int | None] = [None] * len(evidence)
    place_of, seen, n = _place_of(evidence), set[Hashable](), 0
    for hit in hits:
        covered = [number for number, item in enumerate(evidence) if covers(hit, item)]
        new = [number for number in covered if ranks[number] is None]
        place = place_of(hit)
        if new or any(is_quote(evidence[number]) for number in covered) or not (covered or place in seen):
            n += 1
        seen.add(place)
        for number in new:
            ranks[number] = n
    return Counted(tuple(ranks), n)


def _place_of(evidence: Sequence[Evidence]) -> Callable[[Hit], Hashable]:
    """Return what tells hits apart that cover nothing: the finest that a label names."""
    if any(map(is_quote, evidence)):
        return lambda hit: (hit.parent_id, hit.span)
    if any(item.page is not None or item.start is not None for item in evidence):
        return lambda hit: (hit.source, hit.page)
    return lambda hit: hit.source


def is_quote(item: Evidence) -> bool:
    """Tell whether the words of an item are known; a page of a file that is one text has a span without words."""
    return item.quote is not None and item.start is not None
