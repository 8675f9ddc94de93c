"""Places worth asking about: spans of documents, cut by no pipeline's splitter, without what stands on every page.

Cut by a splitter of the variants that are compared, questions would fit that splitter best.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import sqrt
from typing import Literal

from rag_lab.corpus.languages import language_of
from rag_lab.corpus.spans import Span, headings, path_at, sentence_units, trim
from rag_lab.data.synthetic import PASSED_OVER, entities
from rag_lab.records import Document, Passage

SpanKind = Literal["prose", "table", "sheet"]
_CHARS, _LEAST_WORDS, _LEAST_LETTERS = 700, 20, 0.5  # of a place: characters, words, share of letters and digits
_LEAST_PAGES, _SHARE = 3, 0.3  # of the pages of a file: a line that stands on so many is its header or footer
_RARE = 6  # places at most that share an entity


@dataclass(frozen=True, slots=True)
class Place:
    """A span that a question can be asked about."""

    document: Document
    start: int
    end: int
    span: SpanKind
    section: str  # the path of headings above it
    language: str  # '' where it cannot be known

    @property
    def text(self) -> str:
        """What stands there."""
        return self.document.text[self.start : self.end]

    @property
    def entities(self) -> frozenset[str]:
        """Its codes and names."""
        return frozenset(entities(self.text))

    def passage(self, number: int = 1) -> Passage:
        """Return it as a model reads it."""
        source, page = self.document.source, self.document.page
        return Passage(number, f"{source}#{page}:{self.start}", source, page, self.start, self.end, self.text)


def find_places(documents: Iterable[Document]) -> list[Place]:
    """Return all places of the documents, in order; a text that stands in two places is none: which would be meant?"""
    found: list[Place] = []
    for _, pages in groupby(documents, key=lambda document: document.source):
        of_file = list(pages)
        counts = Counter(line for page in of_file for line in set(map(_plain, page.text.split("\n"))))
        common = {line for line, n in counts.items() if line and n >= max(_LEAST_PAGES, _SHARE * len(of_file))}
        main = language_of("\n".join(page.text for page in of_file))
        for page in of_file:
            above, language = headings(page.text), language_of(page.text) or main
            for start, end, is_table in [] if PASSED_OVER.search(page.text) else _windows(page.text, common):
                span: SpanKind = "prose" if not is_table else "sheet" if page.section else "table"
                section = path_at(above, start) or page.section
                found.append(Place(page, start, end, span, section, language))
    words = [place.text.casefold().split() for place in found]
    times = Counter(map(tuple, words))
    return [
        place
        for place, text in zip(found, words, strict=True)
        if times[tuple(text)] == 1
        and len(text) >= _LEAST_WORDS
        and sum(map(str.isalnum, "".join(text))) >= _LEAST_LETTERS * len("".join(text))
    ]


def spread(found: Sequence[Place], n: int) -> list[Place]:
    """Return up to `n` places, each of the file, kind, section and page that has been chosen least, names first.

    Files count by the root of their places, so that a large file is asked about more often, and does not fill the set.
    """
    sizes, taken = Counter(place.document.source for place in found), Counter[object]()
    rest, chosen = [(-len(place.entities), order, place) for order, place in enumerate(found)], list[Place]()

    def cost(item: tuple[int, int, Place]) -> tuple[float, int, int, int, int, int]:
        names, order, place = item
        source = place.document.source
        share = taken[source] / sqrt(sizes[source])
        page = source, place.document.page
        return share, taken[place.span], taken[(source, place.section)], taken[page], names, order

    while rest and len(chosen) < n:
        best = min(rest, key=cost)
        rest.remove(best)
        place = best[2]
        source = place.document.source
        taken.update({source, place.span, (source, place.section), (source, place.document.page)})
        chosen.append(place)
    return chosen


def pairs(found: Sequence[Place]) -> Iterator[tuple[Place, ...]]:
    """Yield pairs from two pages that share a rare entity, the rarest first, each place and entity once."""
    holders: dict[str, list[Place]] = defaultdict(list)
    for place in found:
        for entity in sorted(place.entities):
            holders[entity].append(place)
    used: set[int] = set()
    for places in sorted((some for some in holders.values() if 2 <= len(some) <= _RARE), key=len):
        free = [place for place in places if id(place) not in used]
        other = next((one for one in free[1:] if one.document is not free[0].document), None)
        if other:
            used |= {id(free[0]), id(other)}
            yield free[0], other


def _plain(line: str) -> str:
    return " ".join("".join("0" if char.isdigit() else char for char in line).split())


def _windows(text: str, common: set[str]) -> Iterator[tuple[int, int, bool]]:
    """Yield start, end and whether it is of table rows: units in turn up to the length, over no heading or header."""
    units: list[tuple[int, int, bool | None]] = []  # None where nothing may run over
    start, lines = 0, [(line, len(line) + 1) for line in text.split("\n")]
    for is_common, run in groupby(lines, key=lambda line: _plain(line[0]) in common):
        length = sum(n for _, n in run)
        if is_common:
            units.append((start, start, None))
        else:
            piece = text[start : start + length]
            units += [(start + a, start + b, piece[a] == "|") for a, b in sentence_units(piece)]
        start += length
    breaks = {heading.start for heading in headings(text)}
    window: Span | None = None
    kind: bool | None = None
    for a, b, is_row in units:
        if window and (is_row != kind or a in breaks or b - window[0] > _CHARS):
            yield (*trim(text, *window), bool(kind))
            window = None
        kind = is_row
        if is_row is not None:
            window = (window[0] if window else a, b)
    if window:
        yield (*trim(text, *window), bool(kind))
