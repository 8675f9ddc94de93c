"""Documents to parents, which the reader gets, and children, which are embedded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, islice
from types import MappingProxyType
from typing import Any

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.spans import PageStarts, Span, headings, page_at, path_at, trimmed
from rag_lab.corpus.splitters import Splitter, Unsplit, section_spans, split_spans, splitter_of
from rag_lab.errors import ConfigError
from rag_lab.models.protocols import Embedder
from rag_lab.records import Chunk, Document


def fixed_parents(document: Document, config: CorpusConfig) -> list[Span] | None:
    """Return the parents that do not depend on the children, in order; None where they do.

    They hold each character that is not whitespace exactly once. `page` is a page of a PDF, `section` a section of a
    text that has headings; where there is no such thing they are pieces of about `parent_size` characters, as `fixed`
    ones are. A sheet of a workbook is no page: it may have any length.
    """
    text = document.text
    if config.parents == "page" and document.page is not None and not document.section:
        return trimmed(text, [(0, len(text))])
    if config.parents == "section" and len(sections := section_spans(text)) > 1:
        return trimmed(text, sections)
    if config.parents in ("page", "section", "fixed"):
        return split_spans(text, [(0, len(text))], config.parent_size, 0)
    return None


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
    found = cut(documents, config, splitter_of(config, embedder))
    if reasons := [item.reason for item in found if isinstance(item, Unsplit)]:
        raise ConfigError(reasons[0])
    return chunks(documents, [item for item in found if not isinstance(item, Unsplit)], config)


def cut_identity(config: CorpusConfig, splitter: Splitter) -> Mapping[str, Any]:
    """Return whatever changes where documents are cut, beside their text."""
    by_children = {"neighbours": {"around": config.neighbours}, "none": {}}
    parents = {"name": config.parents, "version": 1, **by_children.get(config.parents, {"size": config.parent_size})}
    found = {"version": 2, "splitter": dict(splitter.identity()), "parents": parents}
    return found if config.pdf_unit == "page" else {**found, "pdf_unit": config.pdf_unit}


def cut(documents: Sequence[Document], config: CorpusConfig, splitter: Splitter) -> list[list[Cut] | Unsplit]:
    """Return for each document its parents with their children, in order, or why it could not be split.

    A child's text is that of its span; children lie inside their parent, and neither begin nor end with whitespace.
    Those of our splitters hold every character that is not whitespace, and no table row is cut.
    """
    parents = [fixed_parents(document, config) for document in documents]
    regions = [
        (document, span)
        for document, spans in zip(documents, parents, strict=True)
        for span in ([(0, len(document.text))] if spans is None else spans)
    ]
    pieces = iter(splitter.split([document.text[start:end] for document, (start, end) in regions]))
    return [_cut(spans, list(islice(pieces, 1 if spans is None else len(spans))), config) for spans in parents]


def chunks(
    documents: Sequence[Document],
    cuts: Sequence[Sequence[Cut]],
    config: CorpusConfig,
    page_starts: Mapping[str, PageStarts] = MappingProxyType({}),
) -> Chunks:
    """Return the chunks that `cut` describes.

    A chunk of a file of which `page_starts` knows the pages has the page on which it begins.

    Ids are readable: `file.pdf#p3` for a page, `file.txt#0-2400` or `file.pdf#p3:0-2400` for another parent,
    `<parent>/0` and so on for its children. Chunks carry their document's attributes and its section: the sheet, or
    the path of headings where sections matter to the splitter or the parents.
    """
    parents: list[Chunk] = []
    children: list[Chunk] = []
    for document, found in zip(documents, cuts, strict=True):
        by_section = config.splitter == "markdown" or config.parents == "section"
        above = headings(document.text) if by_section else []
        make = partial(_chunk, document, page_starts.get(document.source, ()))
        for item in found:
            start, end = item.parent
            parent_id = f"{document.source}#{start}-{end}"
            if document.page is not None:
                is_page = config.parents == "page" and not document.section
                parent_id = f"{document.source}#p{document.page}" + ("" if is_page else f":{start}-{end}")
            chunk = make(parent_id, parent_id, item.parent, path_at(above, item.parent[0]))
            parents.append(chunk)
            children += [
                make(f"{parent_id}/{number}", parent_id, span, path_at(above, span[0]))
                for number, span in enumerate(item.children)
            ]
    return Chunks(tuple(parents), tuple(children))


def _cut(
    spans: Sequence[Span] | None, found: Sequence[list[Span] | Unsplit], config: CorpusConfig
) -> list[Cut] | Unsplit:
    """Return the cuts of one document, of which `spans` are the parents that do not depend on the children."""
    split = [children for children in found if not isinstance(children, Unsplit)]
    if len(split) < len(found):
        return next(children for children in found if isinstance(children, Unsplit))
    if spans is None:  # a child's parent is itself, or with it the `neighbours` before and after it
        around = config.neighbours if config.parents == "neighbours" else 0
        windows = (split[0][max(0, n - around) : n + around + 1] for n in range(len(split[0])))
        parents = [(window[0][0], max(end for _, end in window)) for window in windows]
        # At a document's ends windows can coincide: children of one parent are put together.
        pairs = groupby(zip(parents, split[0], strict=True), key=lambda pair: pair[0])
        return [Cut(parent, tuple(child for _, child in same)) for parent, same in pairs]
    return [
        Cut((start, end), tuple((start + first, start + last) for first, last in children))
        for (start, end), children in zip(spans, split, strict=True)
    ]


def _chunk(document: Document, starts: PageStarts, chunk_id: str, parent_id: str, span: Span, path: str) -> Chunk:
    return Chunk(
        chunk_id=chunk_id,
        parent_id=parent_id,
        source=document.source,
        page=page_at(starts, span[0]) if starts else document.page,
        start=span[0],
        end=span[1],
        text=document.text[span[0] : span[1]],
        namespace=document.namespace,
        permissions=document.permissions,
        section=path or document.section,
    )
