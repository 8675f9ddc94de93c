"""Documents to parents, which the reader gets, and children, which are embedded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.headings import headings, path_at
from rag_lab.corpus.spans import Span
from rag_lab.corpus.split.choose import splitter_of
from rag_lab.corpus.split.parents import given_parents, parents_identity, parents_of_children
from rag_lab.models.protocols import Embedder
from rag_lab.records import Chunk, Document


@dataclass(frozen=True, slots=True)
class Cut:
    """A parent of one document and its children, as spans of the document."""

    parent: Span
    children: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Chunks:
    """Parents and children of a corpus, both in the order of its documents."""

    parents: tuple[Chunk, ...]
    children: tuple[Chunk, ...]


def split(documents: Sequence[Document], config: CorpusConfig, embedder: Embedder | None = None) -> Chunks:
    """Split documents into parents, and parents into children; see `cut` and `chunks`."""
    return chunks(documents, cut(documents, config, embedder), config)


def cut_identity(config: CorpusConfig, embedder: Embedder | None) -> Mapping[str, Any]:
    """Return whatever changes where documents are cut, beside their text."""
    splitter = splitter_of(config, embedder)
    return {"version": 2, "splitter": dict(splitter.identity()), "parents": dict(parents_identity(config))}


def cut(documents: Sequence[Document], config: CorpusConfig, embedder: Embedder | None) -> list[list[Cut]]:
    """Return for each document its parents with their children, in order.

    A child's text is that of its span; children hold every character that is not whitespace, lie inside their parent,
    and neither begin nor end with whitespace. No table row is cut.
    """
    splitter = splitter_of(config, embedder)
    given = [given_parents(document, config) for document in documents]
    regions = [
        (document, span)
        for document, spans in zip(documents, given, strict=True)
        for span in ([(0, len(document.text))] if spans is None else spans)
    ]
    pieces = iter(splitter.split([document.text[start:end] for document, (start, end) in regions]))
    result = []
    for spans in given:
        if spans is None:
            children = next(pieces)
            result.append(_grouped(parents_of_children(children, config), children))
        else:
            result.append([Cut(span, _moved(next(pieces), span[0])) for span in spans])
    return result


def chunks(documents: Sequence[Document], cuts: Sequence[Sequence[Cut]], config: CorpusConfig) -> Chunks:
    """Return the chunks that `cut` describes.

    Ids are readable: `file.pdf#p3` for a page, `file.txt#0-2400` or `file.pdf#p3:0-2400` for another parent,
    `<parent>/0` and so on for its children. Chunks carry their document's attributes and its section: the sheet, or
    the path of headings where sections matter to the splitter or the parents.
    """
    parents: list[Chunk] = []
    children: list[Chunk] = []
    for document, found in zip(documents, cuts, strict=True):
        by_section = config.splitter == "markdown" or config.parents == "section"
        above = headings(document.text) if by_section else []
        for item in found:
            parent_id = _parent_id(document, item.parent, config)
            chunk = _chunk(document, parent_id, parent_id, item.parent, path_at(above, item.parent[0]))
            parents.append(chunk)
            children += [
                _chunk(document, f"{parent_id}/{number}", parent_id, span, path_at(above, span[0]))
                for number, span in enumerate(item.children)
            ]
    return Chunks(tuple(parents), tuple(children))


def _grouped(parents: Sequence[Span], children: Sequence[Span]) -> list[Cut]:
    """Put the children together whose parents are the same: at a document's ends windows can coincide."""
    pairs = zip(parents, children, strict=True)
    return [Cut(parent, tuple(child for _, child in same)) for parent, same in groupby(pairs, key=lambda pair: pair[0])]


def _moved(spans: Sequence[Span], by: int) -> tuple[Span, ...]:
    return tuple((start + by, end + by) for start, end in spans)


def _parent_id(document: Document, span: Span, config: CorpusConfig) -> str:
    piece = f"{span[0]}-{span[1]}"
    if document.page is None:
        return f"{document.source}#{piece}"
    is_page = config.parents == "page" and not document.section
    return f"{document.source}#p{document.page}" if is_page else f"{document.source}#p{document.page}:{piece}"


def _chunk(document: Document, chunk_id: str, parent_id: str, span: Span, path: str) -> Chunk:
    return Chunk(
        chunk_id=chunk_id,
        parent_id=parent_id,
        source=document.source,
        page=document.page,
        start=span[0],
        end=span[1],
        text=document.text[span[0] : span[1]],
        namespace=document.namespace,
        permissions=document.permissions,
        section=path or document.section,
    )
