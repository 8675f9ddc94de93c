"""Documents to parents, which the reader gets, and children, which are embedded.

LangChain's `RecursiveCharacterTextSplitter` decides where to cut. Its own `start_index` is a text search that can land
on an earlier copy of repeated text, so the offsets are worked out here instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_lab.config import CorpusConfig
from rag_lab.records import Chunk, Document

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Chunks:
    """Parents and children of a corpus, both in the order of its documents."""

    parents: tuple[Chunk, ...]
    children: tuple[Chunk, ...]


def split(documents: Sequence[Document], config: CorpusConfig) -> Chunks:
    """Split documents into parents, and parents into children.

    A parent is a page, or a piece of about `parent_size` characters where a file has no pages. Each character that is
    not whitespace is in exactly one parent and in at least one of its children. Neither begins or ends with whitespace.
    Ids are readable: `file.pdf#p3` or `file.txt#0-2400` for a parent, `<parent>/0` and so on for its children.
    """
    parents = tuple(parent for document in documents for parent in _parents(document, config.parent_size))
    children = tuple(child for parent in parents for child in _children(parent, config))
    return Chunks(parents, children)


def split_spans(text: str, size: int, overlap: int) -> list[Span]:
    """Return the half-open spans of the pieces of `text`, in order, without surrounding whitespace or blank pieces."""
    spans = _locate(text, _pieces(text, size, overlap), overlap)
    trimmed = (_trim(text, start, end) for start, end in spans)
    return [(start, end) for start, end in trimmed if start < end]


def _parents(document: Document, size: int) -> Iterator[Chunk]:
    text = document.text
    spans = split_spans(text, size, 0) if document.page is None else [_trim(text, 0, len(text))]
    for start, end in spans:
        place = f"{start}-{end}" if document.page is None else f"p{document.page}"
        parent_id = f"{document.source}#{place}"
        if start < end:
            yield Chunk(parent_id, parent_id, document.source, document.page, start, end, text[start:end])


def _children(parent: Chunk, config: CorpusConfig) -> Iterator[Chunk]:
    spans = split_spans(parent.text, config.chunk_size, config.chunk_overlap)
    for number, (start, end) in enumerate(spans):
        yield Chunk(
            chunk_id=f"{parent.parent_id}/{number}",
            parent_id=parent.parent_id,
            source=parent.source,
            page=parent.page,
            start=parent.start + start,
            end=parent.start + end,
            text=parent.text[start:end],
        )


def _pieces(text: str, size: int, overlap: int) -> list[str]:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    # Whitespace is kept, so that the pieces are exact substrings which leave no gap between them.
    splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap, strip_whitespace=False)
    return splitter.split_text(text)


def _locate(text: str, pieces: Sequence[str], overlap: int) -> list[Span]:
    """Return spans that hold the pieces, begin at 0, end with the text, and never leave a gap or overlap too far.

    In repetitive text a piece fits in several places: all that can be reached are followed forward, and the last
    piece's place, which is certain, decides backward.
    """
    reachable: list[dict[int, int]] = []  # for each piece: where it may start, and where its predecessor then starts
    ends = {0: 0}
    for piece in pieces:
        starts: dict[int, int] = {}
        for end, before in ends.items():
            for start in range(max(0, end - overlap), end + 1):
                if start not in starts and text.startswith(piece, start):
                    starts[start] = before
        reachable.append(starts)
        ends = {start + len(piece): start for start in starts}
    return _trace_back(text, pieces, reachable)


def _trace_back(text: str, pieces: Sequence[str], reachable: Sequence[dict[int, int]]) -> list[Span]:
    spans: list[Span] = []
    end = len(text)
    start = end - len(pieces[-1]) if pieces else 0
    for piece, starts in zip(reversed(pieces), reversed(reachable), strict=True):
        spans.append((start, start + len(piece)))
        start = starts[start]
    return spans[::-1]


def _trim(text: str, start: int, end: int) -> Span:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())
