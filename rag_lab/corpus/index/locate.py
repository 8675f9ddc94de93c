"""Where a question's evidence stands in the corpus: the span of its quote and the text of the parent around it."""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain

from rag_lab.corpus.index.chunk_store import ChunkStore
from rag_lab.corpus.normalize import normalize
from rag_lab.corpus.spans import PageStarts, page_span
from rag_lab.records import Document, Evidence

_INVISIBLE = r"\s\u00ad\u200b"  # whitespace, soft hyphen, zero-width space
_LAYOUT = rf"{_INVISIBLE}|\\-"  # and what tables and broken words are made of


@dataclass(frozen=True, slots=True)
class AsRead:
    """By file: where its pages begin in its text, and the file that stands in the index in its place."""

    page_starts: Mapping[str, PageStarts] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


def find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """Return the half-open span of the first place where `quote` stands in `text`, whitespace aside; None if nowhere.

    Whitespace in either may be absent in the other: extraction breaks lines, and sometimes words, where it likes. Where
    the quote stands nowhere so, hyphens and the bars of tables are set aside too, for the same reason.
    """
    normal = normalize(quote)
    for ignored in (_INVISIBLE, _LAYOUT):
        letters, places = _letters(text, ignored)
        wanted = re.sub(f"[{ignored}]+", "", normal)
        first = letters.find(wanted) if wanted else -1
        if first >= 0:
            return places[first], places[first + len(wanted) - 1] + 1
    return None


@lru_cache(maxsize=16)  # the questions about one document stand together
def _letters(text: str, ignored: str) -> tuple[str, array[int]]:
    """Return what of `text` is not ignored, and where each character of it stands in `text`."""
    runs = [match.span() for match in re.finditer(f"[^{ignored}]+", text)]
    places = array("L", chain.from_iterable(range(*run) for run in runs))
    return "".join(text[start:end] for start, end in runs), places


def locate_evidence(store: ChunkStore, evidence: Evidence, as_read: AsRead = AsRead()) -> tuple[Evidence, str]:
    """Return the evidence with page, `start`, `end` and `context` filled, and why it was not found ("" if it was).

    The context is the parent that holds the quote (parents, where it runs from one into the next); without a quote, the
    one parent of the page, or of the file, and "" where it has several: which of them is meant is not known. What was
    not found is returned as it was given. The file is the one that is indexed; in one whose pages are one text, the
    evidence has a span and no page.
    """
    evidence = replace(evidence, source=as_read.left_out.get(evidence.source, evidence.source))
    documents = store.documents(evidence.source)
    if not documents:
        return evidence, "no such file was read into the corpus; correct the name or add the file."
    if starts := as_read.page_starts.get(evidence.source):
        return _within_file(store, documents[0], evidence, starts)
    if evidence.page is not None:
        paged = [document for document in documents if document.page == evidence.page]
        if not paged:
            return evidence, _no_page([one.page for one in documents if one.page is not None], evidence.page)
        documents = paged
    if not evidence.quote:
        return replace(evidence, context=_only_parent(store, documents)), ""
    for document in documents:
        span = find_quote(document.text, evidence.quote)
        if span:
            context = _context(store, document, *span)
            return replace(evidence, page=document.page, start=span[0], end=span[1], context=context), ""
    return evidence, _no_quote(evidence.quote, evidence.page)


def _within_file(store: ChunkStore, document: Document, evidence: Evidence, starts: PageStarts) -> tuple[Evidence, str]:
    """Locate evidence in a file whose pages are one text; a quote has to begin on the page that is named."""
    text = document.text
    page = (0, len(text)) if evidence.page is None else page_span(starts, evidence.page, len(text))
    if page is None:
        return evidence, _no_page([number for number, _ in starts], evidence.page or 0)
    if not evidence.quote:
        if evidence.page is None:
            return replace(evidence, context=_only_parent(store, [document])), ""
        return replace(evidence, page=None, start=page[0], end=page[1], context=text[slice(*page)]), ""
    found = find_quote(text[page[0] :], evidence.quote)
    start, end = (page[0] + place for place in found or (len(text), len(text)))
    if start >= page[1]:
        return evidence, _no_quote(evidence.quote, evidence.page)
    context = _context(store, document, start, end)
    return replace(evidence, page=None, start=start, end=end, context=context), ""


def _no_quote(quote: str, page: int | None) -> str:
    where = "the file" if page is None else f"page {page}"
    words = " ".join(quote.split())
    words = words if len(words) <= 60 else words[:57] + "..."
    return f"the quote {words!r} does not stand on {where}; correct the quote or the page."


def _only_parent(store: ChunkStore, documents: list[Document]) -> str:
    if len(documents) > 1:
        return ""
    parents = store.parents(documents[0].source, documents[0].page)
    return parents[0].text if len(parents) == 1 else ""


def _context(store: ChunkStore, document: Document, start: int, end: int) -> str:
    parents = store.parents(document.source, document.page)
    touched = [parent for parent in parents if parent.start < end and parent.end > start]
    whole = [parent for parent in touched if parent.start <= start and parent.end >= end]
    if whole:  # parents of neighbouring children overlap, and several may hold the quote
        return min(whole, key=lambda parent: (parent.end - parent.start, parent.start)).text
    return document.text[touched[0].start : max(parent.end for parent in touched)]


def _no_page(pages: list[int], page: int) -> str:
    if not pages:
        return f"page {page} is named, but the file has no pages; leave the page out."
    return f"page {page} was not read: it does not exist or holds no text (last page with text: {max(pages)})."
