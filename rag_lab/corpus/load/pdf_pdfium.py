"""PDF files, page by page, with pypdfium2, whose licence (BSD, Apache) is free of the duties of PyMuPDF's (AGPL).

PDFium gives characters and where they stand; from these the lines are put together that `pdf_text` makes text of.
"""

import io
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from math import cos, sin
from pathlib import Path
from typing import Any

from rag_lab.corpus.load import pdf as pages
from rag_lab.corpus.load.loader import Loaded, LoadError

_CELL_GAP = 0.5  # of the line's height, above which what follows is another cell
_PARAGRAPH_GAP = 0.9  # of the line's height; PDFium's boxes are a fifth lower than PyMuPDF's
_HEAD_BYTES = 1024  # within which a PDF says that it is one
_BROKEN_WORD = 0x02  # PDFium's sign for the hyphen at a line's end, behind which it gives no line end
_SPELT = {0: "\ufffd", _BROKEN_WORD: "-", 0x0D: " "}


def load_pdfium(path: Path, source: str) -> Loaded:
    """Read a PDF as `load_pdf` does, without PyMuPDF."""
    from pypdfium2 import PdfDocument, PdfiumError
    from pypdfium2.raw import FPDF_ERR_PASSWORD, FPDF_PAGEOBJ_IMAGE, FPDF_GetSecurityHandlerRevision

    data = path.read_bytes()
    if not data:
        raise LoadError(pages.EMPTY)
    if b"%PDF-" not in data[:_HEAD_BYTES]:
        raise LoadError(pages.NO_PDF)
    try:
        document = PdfDocument(data)
    except PdfiumError as error:
        reason = pages.ENCRYPTED if error.err_code == FPDF_ERR_PASSWORD else pages.CORRUPT
        raise LoadError(reason) from None
    with closing(document) as pdf:
        pages.check_count(len(pdf))
        is_encrypted = FPDF_GetSecurityHandlerRevision(pdf) != -1
        is_suspect = is_encrypted or pages.holds_too_much(data)

        def read(number: int) -> tuple[str, bool]:
            if is_suspect:
                # PDFium would unpack all of a stream. A page copied into a file by itself opens and enciphers none.
                with closing(PdfDocument.new()) as alone, io.BytesIO() as file:
                    alone.import_pages(pdf, [number - 1])
                    alone.save(file)
                    if pages.holds_too_much(file.getvalue()):
                        raise ValueError("the page's content unpacks to more than is read")
            with closing(pdf[number - 1]) as page:
                text = pages.join(_lines(page), _PARAGRAPH_GAP)
                return text, not text and any(True for _ in page.get_objects(filter=[FPDF_PAGEOBJ_IMAGE]))

        return pages.collected(source, pdf.get_metadata_value("Title"), len(pdf), read)


def _lines(page: Any) -> list[pages.Line]:
    """Return the lines that are not blank, in the file's own order; a wide gap ends one, as between two cells."""
    runs: list[list[pages.Line]] = [[]]
    space = ""
    for char in _characters(page):
        if char.text == "\n":
            runs.append([])
        elif char.text.isspace():
            space = " "
        else:
            if runs[-1]:
                before = runs[-1][-1]
                is_level = min(before.y1, char.y1) > max(before.y0, char.y0)
                is_near = char.x0 - before.x1 <= _CELL_GAP * (char.y1 - char.y0)
                if before.direction != char.direction or not is_level or not is_near:
                    runs.append([])
            runs[-1].append(replace(char, text=space + char.text))
            space = ""
    lines = []
    for run in filter(None, runs):
        left, top = min(char.x0 for char in run), min(char.y0 for char in run)
        right, bottom = max(char.x1 for char in run), max(char.y1 for char in run)
        text = "".join(char.text for char in run).strip()
        lines.append(pages.Line(left, top, right, bottom, text, run[0].direction))
    return lines


def _characters(page: Any) -> Iterator[pages.Line]:
    """Yield the characters and line ends of a page, each as a line of its own."""
    from pypdfium2.raw import FPDFText_GetCharAngle, FPDFText_GetUnicode

    with closing(page.get_textpage()) as text:
        for number in range(text.count_chars()):
            code = FPDFText_GetUnicode(text, number)
            angle = FPDFText_GetCharAngle(text, number)
            left, bottom, right, top = text.get_charbox(number, loose=True)
            along = pages.direction(cos(angle), sin(angle))
            box = pages.turned((left, -top, right, -bottom), along)
            yield pages.Line(*box, _SPELT.get(code) or chr(code), along)
            if code == _BROKEN_WORD:
                yield pages.Line(*box, "\n", along)
