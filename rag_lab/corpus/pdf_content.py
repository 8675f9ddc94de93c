"""How much a PDF's page unpacks to: a few kilobytes can hold gigabytes of drawing commands."""

from __future__ import annotations

import zlib
from typing import Any

_MAX_BYTES = 50 * 2**20  # of the drawing commands of one page


def check_content(page: Any) -> None:
    """Refuse a page (PyMuPDF's) whose drawing commands, or those of a form that it draws, unpack to more than is read.

    Raises:
        ValueError: if they do.
    """
    if any(_unpacks_to_more(page.parent.xref_stream_raw(xref)) for xref in _streams(page)):
        raise ValueError(f"the page's content unpacks to more than {_MAX_BYTES} bytes")


def _streams(page: Any) -> list[int]:
    forms = [form[0] for form in page.get_xobjects()]
    return [*page.get_contents(), *forms]


def _unpacks_to_more(raw: bytes | None) -> bool:
    """Tell whether a stream, where it is deflated, is longer than is read; nothing beyond that length is unpacked."""
    if not raw or len(raw) > _MAX_BYTES:
        return bool(raw)
    unpack = zlib.decompressobj()
    try:
        return len(unpack.decompress(raw, _MAX_BYTES)) == _MAX_BYTES
    except zlib.error:  # not deflated, or damaged, which the reader finds out
        return False
