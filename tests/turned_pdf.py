"""PDF pages that lie on their side or stand on their head, and are turned by their own entry to look upright."""

from __future__ import annotations

import pymupdf


def turned(pdf: pymupdf.Document, degrees: int) -> pymupdf.Document:
    """Return the pages drawn against `degrees`, with `/Rotate`, so that they look as before."""
    result = pymupdf.open()
    for number, page in enumerate(pdf):
        width, height = page.rect.br if degrees == 180 else (page.rect.height, page.rect.width)
        new = result.new_page(width=width, height=height)
        new.show_pdf_page(new.rect, pdf, number, rotate=degrees)
        new.set_rotation(degrees)
    return result
