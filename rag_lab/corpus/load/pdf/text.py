"""PDF files, page by page, with PyMuPDF. The cells of a table's row stay together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_lab.corpus.load.loader import Loaded, LoadError
from rag_lab.corpus.load.pdf.lines import join, page_lines
from rag_lab.corpus.load.pdf.page_bounds import check_content
from rag_lab.corpus.load.text import first_line
from rag_lab.records import Document

EMPTY = "the PDF is empty (0 bytes); replace or remove it."
CORRUPT = "the PDF is corrupt and cannot be opened; replace or remove it."
NO_PDF = "the file is not a PDF although its name ends so; replace, rename or remove it."
ENCRYPTED = "the PDF is encrypted; save it without a password."
_NO_PAGE = "the PDF is corrupt: no page can be read; replace or remove it."
_ONLY_IMAGES = "the PDF holds only images, no text; run OCR on it first."
_SCANNED = re.compile(r"pages? ([\d, ]+) holds? only images")
_MAX_PAGES = 10_000


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

        def one(number: int) -> tuple[str, bool]:
            page = pdf[number - 1]
            check_content(page)
            text = read(page)
            return text, not text and bool(page.get_image_info())

        return collected(source, (pdf.metadata or {}).get("title") or "", pdf.page_count, one)


def collected(source: str, title: str, n_pages: int, read: Callable[[int], tuple[str, bool]]) -> Loaded:
    """Return the pages that hold text, as `load_pdf` says; `read` gives a page's text, and whether it is only an image.

    Raises:
        LoadError: if no page holds text.
    """
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
        check_count(_count_pages(pdf))
        yield pdf


def check_count(n_pages: int) -> None:
    """Refuse a file without pages, and one with more than are read.

    Raises:
        LoadError: if it is such a file.
    """
    if not n_pages:
        raise LoadError(_NO_PAGE)
    if n_pages > _MAX_PAGES:
        raise LoadError(f"the PDF has {n_pages:,} pages, more than {_MAX_PAGES:,} are not read; split it.")


def _count_pages(pdf: Any) -> int:
    """Return the number of pages; 0 where the file gives an impossible one."""
    try:
        return int(pdf.page_count)
    except RuntimeError:
        return 0


def page_text(page: Any) -> str:
    """Return the text of PyMuPDF's page."""
    return join(page_lines(page))


def scanned_pages(reason: str) -> str:
    """Return which pages a problem of a PDF says are images without text, as `2, 3` or `all`; else ''."""
    if reason == _ONLY_IMAGES:
        return "all"
    found = _SCANNED.match(reason)
    return found[1] if found else ""


def _no_text(images: list[int], broken: list[int]) -> str:
    if images:
        return _ONLY_IMAGES
    if broken:
        return _NO_PAGE
    return "the PDF holds no text; replace or remove it."


def _warnings(images: list[int], broken: list[int]) -> Iterator[str]:
    if images:
        yield f"{named_pages(images)} only images and no text: left out; run OCR on the file first."
    if broken:
        yield f"{named_pages(broken)} content that cannot be read: left out; replace the file."


def named_pages(numbers: Iterable[int]) -> str:
    """Return the subject of a warning about pages, and its verb."""
    listed = [str(number) for number in numbers]
    return f"page {listed[0]} holds" if len(listed) == 1 else f"pages {', '.join(listed)} hold"
