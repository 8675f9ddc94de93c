"""PDF files with PyMuPDF, page by page or with their tables; what all readers of PDF files make of lines, and bounds.

Lines are taken in the file's own order, which keeps the columns of a two-column page apart (sorting by position would
mix them). Consecutive lines that stand side by side are one row: they are joined by two spaces. A gap wider than a
line's spacing is a blank line, so that the splitter sees paragraphs. All this is judged in the direction in which the
lines run, so that a page is read alike however it is turned.

Tables are those of which PyMuPDF finds the lines. It says where the cells are; the words in them are put together
here, since its own reading of a cell loses spaces with some fonts. A word stands in one cell or outside the tables:
each comes once.

How much a page unpacks to and draws is bounded: a few kilobytes can hold gigabytes of drawing commands. Of lines that
are drawn, PyMuPDF's search for tables compares each with all others.
"""

import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from rag_lab.corpus.load.loader import Loaded, LoadError, first_line
from rag_lab.corpus.load.tables import markdown_table
from rag_lab.records import Document

_PARAGRAPH_GAP = 0.6  # of the height of PyMuPDF's boxes; single spacing leaves about none, one and a half about 0.4
_ROW_OVERLAP = 0.5  # of the lower line's height, from which two lines stand side by side
# PyMuPDF's TEXT_PRESERVE_WHITESPACE and TEXT_MEDIABOX_CLIP. Ligatures are spelt out, so that "file" is found where the
# font draws its first two letters as one.
_TEXT_FLAGS = 2 | 64

Box = tuple[float, float, float, float]  # left, top, right, bottom, in points
_MAX_STROKES = 4_000  # lines and rectangles
_MAX_CROSSINGS = 5_000  # a table of a hundred rows and fifty columns
_STEP = 3.0  # points; lines that are nearer to each other are one to PyMuPDF
_LAST = 4_800  # the last square of a side of 200 inches, the longest that PDF allows
_MAX_BYTES = 50 * 2**20  # of the drawing commands of one page
_PART = 2**16  # bytes that are unpacked at a time
_STREAM = re.compile(rb"(?<!end)stream\r?\n")
EMPTY = "the PDF is empty (0 bytes); replace or remove it."
CORRUPT = "the PDF is corrupt and cannot be opened; replace or remove it."
NO_PDF = "the file is not a PDF although its name ends so; replace, rename or remove it."
ENCRYPTED = "the PDF is encrypted; save it without a password."
_NO_PAGE = "the PDF is corrupt: no page can be read; replace or remove it."
_ONLY_IMAGES = "the PDF holds only images, no text; run OCR on it first."
_SCANNED = re.compile(r"pages? ([\d, ]+) holds? only images")
_MAX_PAGES = 10_000


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page and the box around it where the page is turned so that the line runs from left to right."""

    x0: float
    y0: float
    x1: float
    y1: float
    text: str
    direction: tuple[int, int] = (1, 0)  # in which it runs on the page: right, down
    number: tuple[int, int] = (0, 0)  # of its block on the page, and its own in the block


def page_lines(page: Any) -> list[Line]:
    """Return the lines of PyMuPDF's page that are not blank, in the file's own order."""
    blocks = page.get_text("dict", flags=_TEXT_FLAGS)["blocks"]
    lines = []
    for block_number, block in enumerate(blocks):
        for number, line in enumerate(block.get("lines", ())):
            if text := re.compile(r"[ \t]{3,}").sub("  ", "".join(span["text"] for span in line["spans"])).strip():
                along = direction(*line["dir"])
                lines.append(Line(*turned(line["bbox"], along), text, along, (block_number, number)))
    return lines


def join(lines: list[Line], paragraph_gap: float = _PARAGRAPH_GAP) -> str:
    """Return lines that follow each other as text: rows joined; paragraphs apart by so much of a line's height."""
    parts = [line.text for line in lines[:1]]
    for before, line in pairwise(lines):
        height = min(before.y1 - before.y0, line.y1 - line.y0)
        shared = min(before.y1, line.y1) - max(before.y0, line.y0)
        if before.direction != line.direction:
            gap = "\n\n"
        elif shared > _ROW_OVERLAP * height and line.x0 >= before.x1 - height / 2:
            gap = "  " if line.x0 - before.x1 > height / 2 else " "
        else:
            gap = "\n\n" if line.y0 - before.y1 > paragraph_gap * height else "\n"
        parts += [gap, line.text]
    return "".join(parts)


def direction(right: float, down: float) -> tuple[int, int]:
    """Return the nearest of the four directions along the page's edges; slanting text counts as level."""
    nearest = round(right), round(down)
    return (1, 0) if all(nearest) else nearest


def turned(box: Box, direction: tuple[int, int]) -> Box:
    """Return where a box stands when the page is turned so that `direction` points to the right."""
    (x0, y0, x1, y1), (right, down) = box, direction
    left, end = sorted((right * x0 + down * y0, right * x1 + down * y1))
    top, bottom = sorted((right * y0 - down * x0, right * y1 - down * x1))
    return left, top, end, bottom


def check_content(page: Any) -> None:
    """Refuse a page of PyMuPDF whose drawing commands, or those of a form in it, unpack to more than is read."""
    streams = [*page.get_contents(), *(form[0] for form in page.get_xobjects())]
    if any(raw and _unpacks_to_more(raw) for raw in map(page.parent.xref_stream_raw, streams)):
        raise ValueError(f"the page's content unpacks to more than {_MAX_BYTES} bytes")


def holds_too_much(pdf: bytes) -> bool:
    """Tell whether a stream of a PDF, a picture included, unpacks to more than is read of a page."""
    return any(_unpacks_to_more(pdf, found.end()) for found in _STREAM.finditer(pdf))


def _unpacks_to_more(data: bytes, start: int = 0) -> bool:
    """Tell whether a deflated stream that begins at `start` is longer than is read; a damaged one the reader finds."""
    unpack = zlib.decompressobj()
    n_bytes = 0
    for place in range(start, len(data), _PART):
        with suppress(zlib.error):
            n_bytes += len(unpack.decompress(data[place : place + _PART], _MAX_BYTES))
            if n_bytes < _MAX_BYTES and not unpack.eof:
                continue
        break
    return n_bytes >= _MAX_BYTES


def has_too_many_rules(page: Any) -> bool:
    """Tell whether PyMuPDF's page draws more lines, or lines crossing at more places (squares), than tables do."""
    import numpy as np

    strokes = [item for path in page.get_cdrawings() for item in path["items"] if item[0] in ("l", "re", "qu")]
    if len(strokes) > _MAX_STROKES:
        return True
    last = min(int(max(page.rect.br) / _STEP), _LAST)
    upright, level = np.zeros((2, last + 1, last + 1), bool)
    for stroke in strokes:
        corners = stroke[1:3]  # the ends of a line, or those of the sides of a rectangle
        if stroke[0] == "re":
            left, top, right, bottom = stroke[1]
            corners = (left, top), (right, top), (right, bottom), (left, bottom)
        elif stroke[0] == "qu":
            upper_left, upper_right, lower_left, lower_right = stroke[1]
            corners = upper_left, upper_right, lower_right, lower_left
        for one, other in zip(corners, [*corners[1:], corners[0]], strict=True):
            (x0, x1), (y0, y1) = sorted((one[0], other[0])), sorted((one[1], other[1]))
            column, row = (min(max(int(middle / _STEP / 2), 0), last) for middle in (x0 + x1, y0 + y1))
            columns, rows = (  # from one place to another, and one more on either side
                slice(max(int(start / _STEP) - 1, 0), max(int(end / _STEP) + 2, 0))
                for start, end in ((x0, x1), (y0, y1))
            )
            if x1 - x0 <= _STEP:
                upright[column, rows] = True
            if y1 - y0 <= _STEP:
                level[columns, row] = True
    return int((upright & level).sum()) > _MAX_CROSSINGS


def page_text(page: Any) -> str:
    """Return the text of PyMuPDF's page."""
    return join(page_lines(page))


def load_pdf(path: Path, source: str, read: Callable[[Any], str] = page_text) -> Loaded:
    """Read a PDF: one document for each page that holds text; `read` takes PyMuPDF's page.

    Pages that are only images, and pages that cannot be read, are left out and named in a warning; blank pages are
    left out silently. The title is the file's own, else the first line of the first page with text.
    """
    with opened_pdf(path) as pdf:

        def one(number: int) -> tuple[str, bool]:
            page = pdf[number - 1]
            check_content(page)
            text = read(page)
            return text, not text and bool(page.get_image_info())

        return collected(source, (pdf.metadata or {}).get("title") or "", pdf.page_count, one)


def collected(source: str, title: str, n_pages: int, read: Callable[[int], tuple[str, bool]]) -> Loaded:
    """Return the pages that hold text; `read` gives a page's text, and whether it is only an image."""
    texts: dict[int, str] = {}
    images, broken = [], []
    for number in range(1, n_pages + 1):
        try:
            text, is_image = read(number)
        except (RuntimeError, ValueError):
            broken.append(number)
            continue
        if text:
            texts[number] = text
        elif is_image:
            images.append(number)
    if not texts:
        empty = "the PDF holds no text; replace or remove it."
        raise LoadError(_ONLY_IMAGES if images else _NO_PAGE if broken else empty)
    title = title.strip() or first_line(next(iter(texts.values())))
    documents = tuple(Document(source, number, text, title) for number, text in texts.items())
    warnings = []
    if images:
        warnings.append(f"{named_pages(images)} only images and no text: left out; run OCR on the file first.")
    if broken:
        warnings.append(f"{named_pages(broken)} content that cannot be read: left out; replace the file.")
    return Loaded(documents, tuple(warnings))


@contextmanager
def opened_pdf(path: Path) -> Iterator[Any]:
    """Give PyMuPDF's document."""
    import pymupdf

    pymupdf.TOOLS.mupdf_display_errors(False)  # bad files are reported by us, not on stderr
    pymupdf.TOOLS.mupdf_display_warnings(False)
    if not path.stat().st_size:
        raise LoadError(EMPTY)
    try:
        pdf = pymupdf.open(path)
    except (RuntimeError, ValueError):
        raise LoadError(CORRUPT) from None
    with pdf:
        if not pdf.is_pdf:
            raise LoadError(NO_PDF)
        if pdf.needs_pass:
            raise LoadError(ENCRYPTED)
        try:
            n_pages = int(pdf.page_count)
        except RuntimeError:  # the file says an impossible one
            n_pages = 0
        check_count(n_pages)
        yield pdf


def check_count(n_pages: int) -> None:
    """Refuse a file without pages, and one with more than are read."""
    if not n_pages:
        raise LoadError(_NO_PAGE)
    if n_pages > _MAX_PAGES:
        raise LoadError(f"the PDF has {n_pages:,} pages, more than {_MAX_PAGES:,} are not read; split it.")


def scanned_pages(reason: str) -> str:
    """Return which pages a problem of a PDF says are images without text, as `2, 3` or `all`; else ''."""
    if reason == _ONLY_IMAGES:
        return "all"
    found = _SCANNED.match(reason)
    return found[1] if found else ""


def named_pages(numbers: Iterable[int]) -> str:
    """Return the subject of a warning about pages, and its verb."""
    listed = [str(number) for number in numbers]
    return f"page {listed[0]} holds" if len(listed) == 1 else f"pages {', '.join(listed)} hold"


def load_pdf_tables(path: Path, source: str) -> Loaded:
    """Read a PDF as `load_pdf`, tables of ruled or filled cells as Markdown; a page with too many lines without any."""
    crowded: list[int] = []

    def read(page: Any) -> str:
        if not has_too_many_rules(page):
            return _page_text(page)
        crowded.append(page.number + 1)
        return page_text(page)

    loaded = load_pdf(path, source, read)
    if not crowded:
        return loaded
    warning = f"{named_pages(crowded)} more drawn lines than tables have: read without looking for tables."
    return replace(loaded, warnings=(*loaded.warnings, warning))


def _page_text(page: Any) -> str:
    """Return the text with each table where the first line stands that has a word in it."""
    import pymupdf

    lines = page_lines(page)
    found = page.get_text("words", flags=_TEXT_FLAGS)
    seen = pymupdf.Identity  # tables are found where the reader sees them, words where the file draws them
    if page.rotation:  # the whole of a turned page is shown, else tables are misplaced
        left, top = page.cropbox.x0 - page.mediabox.x0, page.cropbox.y0
        whole = " ".join(f"{place:.3f}" for place in page.mediabox)
        page.parent.xref_set_key(page.xref, "CropBox", f"[{whole}]")
        seen = pymupdf.Matrix(1, 0, 0, 1, left, top) * page.rotation_matrix
    words = [(tuple(pymupdf.Rect(word[:4]) * seen), word[4]) for word in found]
    waiting = dict(enumerate(_tables(page, words)))
    owner = {word: number for number, (_, in_table) in waiting.items() for word in in_table}
    of_line = defaultdict(list)  # by `Line.number`
    for number, word in enumerate(found):
        of_line[word[5:7]].append(number)
    blocks: list[str] = []
    run: list[Line] = []
    for line in lines:
        of_this = of_line[line.number]
        for number in sorted({owner[word] for word in of_this if word in owner} & waiting.keys()):
            blocks += [join(run), waiting.pop(number)[0]]
            run = []
        rest = [words[word][1] for word in of_this if word not in owner]
        if rest:
            run.append(line if len(rest) == len(of_this) else replace(line, text=" ".join(rest)))
    return "\n\n".join(block for block in [*blocks, join(run)] if block)


def _tables(page: Any, words: Sequence[tuple[Box, str]]) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield the tables with more than one row and column, as Markdown, and numbers of the words in each, each once."""
    free = dict(enumerate(words))
    # PyMuPDF's model of a page's layout takes seconds a page and minutes on a drawing; ruled tables need none.
    for table in page.find_tables(use_layout=False).tables:
        rows = table.rows
        places = {number: place for number, (box, _) in free.items() if (place := _place(rows, box))}
        cells: dict[tuple[int, int], list[str]] = defaultdict(list)
        for number, place in places.items():
            cells[place].append(words[number][1])
        # The part of a merged cell that belongs to its neighbour is "".
        texts = [[" ".join(cells[n, column]) for column in range(len(row.cells))] for n, row in enumerate(rows)]
        lines, n_too_long = markdown_table(texts)
        if len(lines) > 2 and len(rows[0].cells) > 1 and not n_too_long:
            yield "\n".join(lines), frozenset(places)
            free = {number: word for number, word in free.items() if number not in places}


def _place(rows: Sequence[Any], box: Box) -> tuple[int, int] | None:
    """Return row and column of the first cell that holds the middle of a box, None where none does."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    for number, row in enumerate(rows):
        for column, cell in enumerate(row.cells):
            boxes = (row.bbox, cell) if cell else ()
            if boxes and all(left <= x <= right and top <= y <= bottom for left, top, right, bottom in boxes):
                return number, column
    return None
