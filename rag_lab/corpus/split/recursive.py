"""Characters, at the coarsest boundary that fits: paragraphs, lines, words, letters.

LangChain's `RecursiveCharacterTextSplitter` decides where to cut. Its own `start_index` is a text search that can land
on an earlier copy of repeated text, so the offsets are worked out here instead.

`markdown` is the same below headings: no piece runs over one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any, ClassVar, Self

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.headings import headings
from rag_lab.corpus.spans import Span, row_spans, trimmed

_BLOCK_CHARS = 50_000


@dataclass(frozen=True)
class Recursive:
    """Pieces of at most `size` characters that share at most `overlap` with their neighbours."""

    name: ClassVar[str] = "recursive"
    version: ClassVar[int] = 1

    size: int
    overlap: int

    @classmethod
    def of(cls, config: CorpusConfig, embedder: object) -> Self:
        """Return what `config` asks for."""
        return cls(config.chunk_size, config.chunk_overlap)

    def identity(self) -> Mapping[str, Any]:
        """The two lengths."""
        return {"name": self.name, "version": self.version, "size": self.size, "overlap": self.overlap}

    def split(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the spans of the pieces; see `Splitter`."""
        return [split_spans(text, self._parts(text), self.size, self.overlap) for text in texts]

    def _parts(self, text: str) -> list[Span]:
        return [(0, len(text))]


def split_spans(text: str, parts: Iterable[Span], size: int, overlap: int) -> list[Span]:
    """Return the half-open spans of the pieces of each part, in order, without surrounding whitespace or blank pieces.

    Parts are spans of `text`, not texts: the end of a line by itself may look like a table row that the line is not.
    """
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    # Whitespace is kept, so that the pieces are exact substrings which leave no gap between them.
    splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap, strip_whitespace=False)
    # The library counts the indentation of a row and the line ends around it.
    rows = [(start, end) for start, end in row_spans(text) if end - text.rfind("\n", 0, start) + 1 >= size]
    spans: list[Span] = []
    for part in parts:
        # Rows that do not fit a piece stand alone. Shorter ones need no care: they are lines, none of which is cut.
        first, last = bisect_left(rows, part[0], key=itemgetter(0)), bisect_right(rows, part[1], key=itemgetter(1))
        for (_, before), row in pairwise([(part[0], part[0]), *rows[first:last], (part[1], part[1])]):
            for start, end in _blocks(text, before, row[0]):
                found = _locate(text[start:end], splitter.split_text(text[start:end]), overlap)
                spans += [(start + one, start + other) for one, other in found]
            spans.append(row)
    return trimmed(text, spans)


def _blocks(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield text in blocks that the library can cut with little memory; a break is at a line's end where there is one.

    Only texts beyond any page or section have more than one block.
    """
    while end - start > _BLOCK_CHARS:
        cut = text.rfind("\n", start + _BLOCK_CHARS // 2, start + _BLOCK_CHARS) + 1
        cut = cut or text.rfind(" ", start + _BLOCK_CHARS // 2, start + _BLOCK_CHARS) + 1 or start + _BLOCK_CHARS
        yield start, cut
        start = cut
    if start < end:
        yield start, end


def _locate(text: str, pieces: Sequence[str], overlap: int) -> list[Span]:
    """Return spans that hold the pieces, begin at 0, end with the text, and never leave a gap or overlap too far.

    In repetitive text a piece fits in several places: all that can be reached are followed forward, and the last
    piece's place, which is certain, decides backward.
    """
    reachable: list[dict[int, int]] = []  # for each piece: where it may start, and where its predecessor then starts
    ends = {0: 0}  # in ascending order
    for piece in pieces:
        starts: dict[int, int] = {}
        tried = 0
        for end, before in ends.items():
            for start in range(max(tried, end - overlap), end + 1):
                if text.startswith(piece, start):
                    starts[start] = before
            tried = end + 1
        reachable.append(starts)
        ends = {start + len(piece): start for start in starts}
    spans: list[Span] = []
    start = len(text) - len(pieces[-1]) if pieces else 0
    for piece, starts in zip(reversed(pieces), reversed(reachable), strict=True):
        spans.append((start, start + len(piece)))
        start = starts[start]
    return spans[::-1]


@dataclass(frozen=True)
class MarkdownSections(Recursive):
    """Sections first, then pieces of at most `size` characters that share at most `overlap`."""

    name: ClassVar[str] = "markdown"
    version: ClassVar[int] = 2

    def _parts(self, text: str) -> list[Span]:
        return section_spans(text)


def section_spans(text: str) -> list[Span]:
    """Return the spans of what stands before the first heading and of each section, which together are the text.

    Headings that follow each other with nothing between them belong to one section.
    """
    found = headings(text)
    bare = {after.start for before, after in pairwise(found) if not text[before.end : after.start].strip()}
    opening = [heading.start for heading in found if heading.start not in bare]
    return [(start, end) for start, end in pairwise([0, *opening, len(text)]) if start < end]
