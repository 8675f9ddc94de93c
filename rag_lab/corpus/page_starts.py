"""A paged file as one text, so that a piece may run over the end of a page; where each page begins is kept."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

from rag_lab.corpus.spans import Span
from rag_lab.records import Document

PageStarts = tuple[tuple[int, int], ...]  # a page, and where it begins in the text of its file; in order, () for none

_BREAK = "\n"  # no paragraph ends because a page does


def joined(documents: Sequence[Document]) -> tuple[Document, PageStarts] | None:
    """Return the pages of one file as one document without a page, and where they begin in it.

    None where they are no pages: a text without any, or the sheets of a workbook.
    """
    pages = [document.page for document in documents if document.page is not None and not document.section]
    if len(pages) < len(documents):
        return None
    starts: list[int] = []
    length = 0
    for document in documents:
        starts.append(length)
        length += len(document.text) + len(_BREAK)
    text = _BREAK.join(document.text for document in documents)
    return replace(documents[0], page=None, text=text), tuple(zip(pages, starts, strict=True))


def page_at(starts: PageStarts, position: int) -> int | None:
    """Return the page on which a character of the file's text stands; None where it has no pages."""
    before = bisect_right(starts, position, key=itemgetter(1))
    return starts[before - 1][0] if before else None


def page_span(starts: PageStarts, page: int, length: int) -> Span | None:
    """Return where a page stands in its file's text of `length` characters; None if there is no such page."""
    ends = [start - len(_BREAK) for _, start in starts[1:]] + [length]
    spans = {number: (start, end) for (number, start), end in zip(starts, ends, strict=True)}
    return spans.get(page)
