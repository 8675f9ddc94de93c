"""Spans of a text: half-open, trimmed of whitespace; of words, sentences and table rows, of pages and of headings.

No splitter cuts a table row; sentences and rows are the units of sentence splitters. Of a paged file that is one text,
where each page begins is kept.

Headings, and which lines of a text are Markdown, go by CommonMark's rules. One is stricter: the line under a heading
has three characters at least, since texts that are not Markdown have lines of one hyphen.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
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
_BLOCK_CHARS = 50_000
PageStarts = tuple[tuple[int, int], ...]  # a page, and where it begins in the text of its file; in order, () for none
_PAGE_BREAK = "\n"  # no paragraph ends because a page does


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


def sheet_spans(text: str) -> list[Span]:
    """Return what stands before a sheet's first row, its header included, and each row; [] where it has none."""
    rows = row_spans(text)
    if len(rows) < 3 or not set(text[slice(*rows[1])]) <= set("|-: "):
        return []
    return trimmed(text, pairwise([0, *(end for _, end in rows[1:-1]), len(text)]))


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


def words_in(counted: Sequence[Span], unit: Span) -> Span:
    """Return the place of the first of the words that begin in a part of the text, and that behind the last."""
    start, stop = (bisect_left(counted, place, key=itemgetter(0)) for place in unit)
    return start, stop


def sentences_and_words(text: str, counted: Sequence[Span], most: int) -> list[Span]:
    """Return sentences and rows; of a sentence of more than `most` words these, or the part within, in its place."""
    rows = set(row_spans(text))
    units: list[Span] = []
    for unit in sentence_units(text):
        first, last = words_in(counted, unit)
        if unit in rows or last - first <= most:
            units.append(unit)
            continue
        if first and counted[first - 1][1] > unit[0]:
            first -= 1
        units += [(max(begin, unit[0]), min(finish, unit[1])) for begin, finish in counted[first:last]]
    return units


def blocks(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield blocks of text, broken at line ends where possible; only texts beyond any page or section have several."""
    while end - start > _BLOCK_CHARS:
        cut = text.rfind("\n", start + _BLOCK_CHARS // 2, start + _BLOCK_CHARS) + 1
        cut = cut or text.rfind(" ", start + _BLOCK_CHARS // 2, start + _BLOCK_CHARS) + 1 or start + _BLOCK_CHARS
        yield start, cut
        start = cut
    if start < end:
        yield start, end


def piece_spans(text: str, pieces: Sequence[str], overlap: int) -> list[Span]:
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


def joined(documents: Sequence[Document]) -> tuple[Document, PageStarts] | None:
    """Return the pages of one file as one document, and where they begin in it; None where they are no pages."""
    pages = [document.page for document in documents if document.page is not None and not document.section]
    if len(pages) < len(documents):
        return None
    starts: list[int] = []
    length = 0
    for document in documents:
        starts.append(length)
        length += len(document.text) + len(_PAGE_BREAK)
    text = _PAGE_BREAK.join(document.text for document in documents)
    return replace(documents[0], page=None, text=text), tuple(zip(pages, starts, strict=True))


def page_at(starts: PageStarts, position: int) -> int | None:
    """Return the page on which a character of the file's text stands; None where it has no pages."""
    before = bisect_right(starts, position, key=itemgetter(1))
    return starts[before - 1][0] if before else None


def page_span(starts: PageStarts, page: int, length: int) -> Span | None:
    """Return where a page stands in its file's text of `length` characters; None if there is no such page."""
    ends = [start - len(_PAGE_BREAK) for _, start in starts[1:]] + [length]
    spans = {number: (start, end) for (number, start), end in zip(starts, ends, strict=True)}
    return spans.get(page)


# A fence may stand in the first line of a list's item, and what follows backticks holds none.
_FENCE = re.compile(r"((?: {0,3}(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)+)?) {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_KEY = re.compile(r"[\w-]+[ \t]*:(?:[ \t]|$)")

_DEEPEST = 6
_UNDERLINE = re.compile(r" {0,3}(={3,}|-{3,})[ \t]*")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})")
_BLOCK = re.compile(r" {0,3}(?:[>|]|[-+*][ \t]|\d{1,9}[.)][ \t])")  # a quote, a table's row, a list's item
_CODE = ("    ", "\t")
_NO_PARAGRAPH = -1  # lists, quotes, tables and code cannot be underlined


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading such as `## Hydraulics`, and where its first line begins and its last one ends."""

    start: int
    end: int
    level: int
    title: str
    path: tuple[str, ...]  # the titles of the headings above it, and its own


def headings(text: str) -> list[Heading]:
    """Return the headings that begin with `#` or are underlined, in order."""
    found: list[Heading] = []
    above: list[tuple[int, str]] = []
    paragraph: int | None = None  # where the one began that the line before belongs to
    for start, line in _markdown_lines(text):
        underline = _UNDERLINE.fullmatch(line)
        marked = line.lstrip(" ")
        level = len(marked) - len(marked.lstrip("#"))
        is_marked = 1 <= level <= _DEEPEST and len(line) - len(marked) <= 3 and marked[level : level + 1] in (" ", "\t")
        if is_marked and marked[level:].strip(" \t#"):
            first, title = start, line.strip().lstrip("#").strip()
            opened = title.rstrip("#")  # hashes may close a heading
            title = opened.strip() if opened.endswith((" ", "\t")) else title
        elif underline and paragraph is not None and paragraph != _NO_PARAGRAPH:
            first, level = paragraph, 1 if underline[1][0] == "=" else 2
            title = " ".join(text[paragraph:start].split())
        elif not line.strip() or _RULE.fullmatch(line):
            paragraph = None
            continue
        elif _BLOCK.match(line) or (paragraph is None and line.startswith(_CODE)):
            paragraph = _NO_PARAGRAPH
            continue
        else:
            paragraph = start if paragraph is None else paragraph
            continue
        title = title[:200]
        above = [*(item for item in above if item[0] < level), (level, title)]
        found.append(Heading(first, start + len(line), level, title, tuple(title for _, title in above)))
        paragraph = None
    return found


def path_at(found: Sequence[Heading], position: int) -> str:
    """Return the path of headings above `position`, as `Manual > Hydraulics` ("" before the first heading)."""
    number = bisect_right(found, position, key=lambda heading: heading.start)
    return " > ".join(found[number - 1].path) if number else ""


def body_start(text: str) -> int:
    """Return where a text begins behind its front matter: YAML between `---` and `---` or `...`."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return 0
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
    is_yaml = any(_KEY.match(line) for line in lines[1:end])
    return min(sum(len(line) + 1 for line in lines[: end + 1]), len(text)) if is_yaml else 0


def _markdown_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield where each line behind the front matter begins, and the line; "" for one of fenced code."""
    start = body_start(text)
    fence: re.Match[str] | None = None
    for line in text[start:].split("\n"):
        indent = len(line) - len(line.lstrip())
        if fence and line.strip() and indent < len(fence[1]):  # outside the item of a list that it began in
            fence = None
        if fence:
            bare = line.strip()
            closes = len(bare) >= len(fence[2]) and set(bare) == {fence[2][0]} and indent <= len(fence[1]) + 3
            yield start, ""
            fence = None if closes else fence
        else:
            fence = _FENCE.match(line)
            yield start, "" if fence else line
        start += len(line) + 1
