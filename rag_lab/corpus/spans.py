"""Spans of a text: half-open, trimmed of whitespace, and those of the table rows, which no splitter cuts.

Sentences and table rows, which are never cut, are the units of sentence splitters. Of a paged file that is one text,
where each page begins is kept.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter

from rag_lab.records import Document

Span = tuple[int, int]
# A full stop followed by a space, a full stop of the East Asian scripts or of Devanagari, or a line end.
SENTENCE_END = re.compile(r"""[.!?…؟]["'”’»)\]]*\s+|[。！？｡।][”’」』）]*\s*|\n+""")
# A heading's or paragraph's end; a line that merely wraps does not end a sentence.
_PROSE_END = re.compile(r"""[.!?…؟]["'”’»)\]]*\s+|[。！？｡।][”’」』）]*\s*|\n{2,}|\n(?=[-*#|])""")
# Scripts without spaces between words (Thai, Japanese, Chinese): a character counts as a word.
UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
PageStarts = tuple[tuple[int, int], ...]  # a page, and where it begins in the text of its file; in order, () for none
_BREAK = "\n"  # no paragraph ends because a page does


def row_spans(text: str) -> list[Span]:
    """Return the half-open span of each table row in `text`, from its first bar to its last, in order."""
    rows: list[Span] = []
    start = 0
    for line in text.split("\n") if "|" in text else ():
        bare = line.strip()
        if len(bare) > 1 and bare[0] == bare[-1] == "|":
            first = start + line.index("|")
            rows.append((first, first + len(bare)))
        start += len(line) + 1
    return rows


def trim(text: str, start: int, end: int) -> Span:
    """Return the span without the whitespace at its ends; empty where there is nothing else."""
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def trimmed(text: str, spans: Iterable[Span]) -> list[Span]:
    """Return the spans without whitespace at their ends; blank ones are left out."""
    return [span for span in (trim(text, start, end) for start, end in spans) if span[0] < span[1]]


def sentence_units(text: str) -> list[Span]:
    """Return the spans of the sentences and table rows of `text`, in order, without whitespace around them."""
    units: list[Span] = []
    rows = row_spans(text)
    for (_, before), (start, end) in pairwise([(0, 0), *rows, (len(text), len(text))]):
        bounds = [before, *(match.end() for match in _PROSE_END.finditer(text, before, start)), start]
        units += [*pairwise(bounds), (start, end)]
    return trimmed(text, units)


def words(text: str) -> list[Span]:
    """Return the spans of the words of `text`, in order. They hold every character that is not whitespace."""
    return [match.span() for match in _WORD.finditer(text)]


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
