"""Places worth asking about: spans of documents without what stands on every page, spread over the corpus.

They are whole sentences of a section, or rows of a table, whatever splitter a pipeline has: a quote is labelled.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import sqrt
from typing import Literal

from rag_lab.corpus.chunks import split
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.languages import language_of
from rag_lab.data.synthetic import PASSED_OVER, TABLE_ROW, entities
from rag_lab.records import Chunk, Document, Passage

SpanKind = Literal["prose", "table", "sheet"]
_SPANS = CorpusConfig(splitter="sentences", chunk_words=110, overlap_words=0, whole_below=0, parents="section")
_LEAST_WORDS, _LEAST_LETTERS = 20, 0.5  # of a place: words, share of letters and digits
_LEAST_PAGES, _SHARE = 3, 0.3  # of the pages of a file: a line that stands on so many is its header or footer
_RARE = 6  # places at most that share an entity


@dataclass(frozen=True, slots=True)
class Place:
    """A span that a question can be asked about; blank where a header stood."""

    chunk: Chunk
    span: SpanKind = "prose"
    language: str = ""  # '' where it cannot be known

    @property
    def entities(self) -> list[str]:
        """Its codes and names."""
        return entities(self.chunk.text)

    def passage(self, number: int = 1) -> Passage:
        """Return it as a model reads it."""
        one = self.chunk
        return Passage(number, one.chunk_id, one.source, one.page, one.start, one.end, one.text)


def find_places(documents: Sequence[Document], language: str = "") -> list[Place]:
    """Return all places of the documents, in order; a text that stands in two places is none: which would be meant?

    `language` is that of files that are too short to tell their own.
    """
    found: list[Place] = []
    for _, pages in groupby(documents, key=lambda document: document.source):
        of_file = [page for page in _without_headers(list(pages)) if not PASSED_OVER.search(page.text)]
        main = language_of("\n".join(page.text for page in of_file)) or language
        for chunk in split(of_file, _SPANS).children:
            lines = chunk.text.split("\n")
            is_table = 2 * sum(bool(TABLE_ROW.match(line)) for line in lines) > len(lines)
            is_sheet = any(page.section and page.page == chunk.page for page in of_file)
            kind: SpanKind = "prose" if not is_table else "sheet" if is_sheet else "table"
            found.append(Place(chunk, kind, language_of(chunk.text) or main))
    texts = ["".join(place.chunk.text.casefold().split()) for place in found]
    times = Counter(texts)
    return [
        place
        for place, text in zip(found, texts, strict=True)
        if times[text] == 1
        and len(place.chunk.text.split()) >= _LEAST_WORDS
        and sum(map(str.isalnum, text)) >= _LEAST_LETTERS * len(text)
    ]


def spread(found: Sequence[Place], n: int) -> list[Place]:
    """Return up to `n` places, each of the file, kind, section and page that has been chosen least, names first."""
    sizes = Counter(place.chunk.source for place in found)
    taken: Counter[object] = Counter()
    rest, chosen = {number: (place, -len(place.entities)) for number, place in enumerate(found)}, list[Place]()
    while rest and len(chosen) < n:

        def cost(number: int) -> tuple[float, ...]:
            (place, names), one = rest[number], rest[number][0].chunk
            counts = taken[place.span], taken[one.source, one.section], taken[one.source, one.page, 0]
            return taken[one.source] / sqrt(sizes[one.source]), *counts, names, number

        place, _ = rest.pop(min(rest, key=cost))
        one = place.chunk
        taken.update([one.source, place.span, (one.source, one.section), (one.source, one.page, 0)])
        chosen.append(place)
    return chosen


def pairs(found: Sequence[Place]) -> Iterator[tuple[Place, ...]]:
    """Yield pairs from two pages that share a rare entity, the rarest first, each place and entity once."""
    holders: dict[str, list[Place]] = defaultdict(list)
    for place in found:
        for entity in place.entities:
            holders[entity].append(place)
    used: set[str] = set()
    for places in sorted((some for some in holders.values() if 2 <= len(some) <= _RARE), key=len):
        first, *others = [place for place in places if place.chunk.chunk_id not in used] or places[:1]
        page = first.chunk.source, first.chunk.page
        if other := next((one for one in others if (one.chunk.source, one.chunk.page) != page), None):
            used |= {first.chunk.chunk_id, other.chunk.chunk_id}
            yield first, other


def _without_headers(pages: Sequence[Document]) -> list[Document]:
    """Return the pages of a file with blanks for the lines that stand on many of them, numbers aside."""
    lines = [{line: re.sub(r"\d", "0", line.strip()) for line in page.text.split("\n")} for page in pages]
    counts = Counter(plain for of_page in lines for plain in set(of_page.values()))
    least = max(_LEAST_PAGES, _SHARE * len(pages))
    headers = [{line for line, plain in of_page.items() if counts[plain] >= least} for of_page in lines]
    return [
        replace(page, text="\n".join(" " * len(x) if x in of_page else x for x in page.text.split("\n")))
        for page, of_page in zip(pages, headers, strict=True)
    ]
