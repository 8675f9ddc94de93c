"""PDF files, page by page, with PyMuPDF. The cells of a table's row stay together.

Lines are taken in the file's own order, which keeps the columns of a two-column page apart (sorting by position would
mix them). Consecutive lines that stand side by side are one row: they are joined by two spaces. A gap wider than a
line's spacing is a blank line, so that the splitter sees paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rag_lab.corpus.base import Loaded, LoadError
from rag_lab.corpus.pdf_content import check_content
from rag_lab.corpus.text import first_line
from rag_lab.records import Document

_PARAGRAPH_GAP = 0.6  # of the line's height; single spacing leaves about none, one and a half about 0.4
_ROW_OVERLAP = 0.5  # of the lower line's height, from which two lines stand side by side
_RUN_OF_SPACES = re.compile(r"[ \t]{3,}")
_MAX_PAGES = 10_000


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page and the box around it, in points from the upper left corner."""

    x0: float
    y0: float
    x1: float
    y1: float
    text: str

    @property
    def height(self) -> float:
        """Height of the box."""
        return self.y1 - self.y0


def load_pdf(path: Path, source: str) -> Loaded:
    """Read a PDF: one document for each page that holds text.

    Pages that are only images, and pages that cannot be read, are left out and named in a warning; blank pages are
    left out silently. The title is the file's own, else the first line of the first page with text.

    Raises:
        LoadError: if the file is empty, corrupt, encrypted, too long, or holds no text at all.
    """
    return load_pages(path, source, page_text)


def load_pages(path: Path, source: str, read: Callable[[Any], str]) -> Loaded:
    """Do what `load_pdf` does, each page (PyMuPDF's) read by `read`."""
    with opened_pdf(path) as pdf:
        texts: dict[int, str] = {}
        images, broken = [], []
        for number in range(1, pdf.page_count + 1):
            try:
                page = pdf[number - 1]
                check_content(page)
                text = read(page)
                if text:
                    texts[number] = text
                elif page.get_image_info():
                    images.append(number)
            except (RuntimeError, ValueError):
                broken.append(number)
        title = (pdf.metadata or {}).get("title") or ""
    if not texts:
        raise LoadError(_no_text(images, broken))
    title = title.strip() or first_line(next(iter(texts.values())))
    documents = tuple(Document(source, number, text, title) for number, text in texts.items())
    return Loaded(documents, tuple(_warnings(images, broken)))


@contextmanager
def opened_pdf(path: Path) -> Iterator[Any]:
    """Give PyMuPDF's document.

    Raises:
        LoadError: if the file is empty, corrupt, encrypted, too long, or no PDF.
    """
    import pymupdf

    pymupdf.TOOLS.mupdf_display_errors(False)  # bad files are reported by us, not on stderr
    pymupdf.TOOLS.mupdf_display_warnings(False)
    if not path.stat().st_size:
        raise LoadError("the PDF is empty (0 bytes); replace or remove it.")
    try:
        pdf = pymupdf.open(path)
    except (RuntimeError, ValueError):
        raise LoadError("the PDF is corrupt and cannot be opened; replace or remove it.") from None
    with pdf:
        if not pdf.is_pdf:
            raise LoadError("the file is not a PDF although its name ends so; replace, rename or remove it.")
        if pdf.needs_pass:
            raise LoadError("the PDF is encrypted; save it without a password.")
        n_pages = _count_pages(pdf)
        if not n_pages:
            raise LoadError("the PDF is corrupt: no page can be read; replace or remove it.")
        if n_pages > _MAX_PAGES:
            raise LoadError(f"the PDF has {n_pages:,} pages, more than {_MAX_PAGES:,} are not read; split it.")
        yield pdf


def _count_pages(pdf: Any) -> int:
    """Return the number of pages; 0 where the file gives an impossible one."""
    try:
        return int(pdf.page_count)
    except RuntimeError:
        return 0


def page_text(page: Any) -> str:
    """Return the text of PyMuPDF's page."""
    return join(page_lines(page))


def page_lines(page: Any) -> list[Line]:
    """Return the lines of PyMuPDF's page that are not blank, in the file's own order."""
    import pymupdf

    # Ligatures are spelt out, so that "file" is found where the font draws its first two letters as one.
    flags = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_MEDIABOX_CLIP
    blocks = page.get_text("dict", flags=flags)["blocks"]
    return [line for block in blocks for line in _lines(block)]


def join(lines: list[Line]) -> str:
    """Return lines that follow each other as text: rows joined, paragraphs apart."""
    if not lines:
        return ""
    return lines[0].text + "".join(_gap(above, line) + line.text for above, line in pairwise(lines))


def _lines(block: Any) -> Iterator[Line]:
    for line in block.get("lines", ()):
        text = _RUN_OF_SPACES.sub("  ", "".join(span["text"] for span in line["spans"])).strip()
        if text:
            x0, y0, x1, y1 = line["bbox"]
            yield Line(x0, y0, x1, y1, text)


def _gap(before: Line, line: Line) -> str:
    """Return the whitespace between two lines that follow each other in the file."""
    height = min(before.height, line.height)
    shared = min(before.y1, line.y1) - max(before.y0, line.y0)
    if shared > _ROW_OVERLAP * height and line.x0 >= before.x1 - height / 2:
        return "  " if line.x0 - before.x1 > height / 2 else " "
    return "\n\n" if line.y0 - before.y1 > _PARAGRAPH_GAP * height else "\n"


def _no_text(images: list[int], broken: list[int]) -> str:
    if images:
        return "the PDF holds only images, no text; run OCR on it first."
    if broken:
        return "the PDF is corrupt: no page can be read; replace or remove it."
    return "the PDF holds no text; replace or remove it."


def _warnings(images: list[int], broken: list[int]) -> Iterator[str]:
    if images:
        yield f"{_pages(images)} only images and no text: left out; run OCR on the file first."
    if broken:
        yield f"{_pages(broken)} content that cannot be read: left out; replace the file."


def _pages(numbers: Iterable[int]) -> str:
    listed = [str(number) for number in numbers]
    return f"page {listed[0]} holds" if len(listed) == 1 else f"pages {', '.join(listed)} hold"
