"""PDF files, page by page, with PyMuPDF. The cells of a table's row stay together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_lab.corpus.base import Loaded, LoadError
from rag_lab.corpus.pdf_content import check_content
from rag_lab.corpus.pdf_lines import join, page_lines
from rag_lab.corpus.text import first_line
from rag_lab.records import Document

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


def _no_text(images: list[int], broken: list[int]) -> str:
    if images:
        return "the PDF holds only images, no text; run OCR on it first."
    if broken:
        return "the PDF is corrupt: no page can be read; replace or remove it."
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
