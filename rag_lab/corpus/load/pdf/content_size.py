"""How much a PDF's page unpacks to: a few kilobytes can hold gigabytes of drawing commands."""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from typing import Any

_MAX_BYTES = 50 * 2**20  # of the drawing commands of one page
_PART = 2**16  # bytes that are unpacked at a time
_STREAM = re.compile(rb"(?<!end)stream\r?\n")


def check_content(page: Any) -> None:
    """Refuse a page (PyMuPDF's) whose drawing commands, or those of a form that it draws, unpack to more than is read.

    Raises:
        ValueError: if they do.
    """
    if any(raw and _unpacks_to_more(raw) for raw in map(page.parent.xref_stream_raw, _streams(page))):
        raise ValueError(f"the page's content unpacks to more than {_MAX_BYTES} bytes")


def holds_too_much(pdf: bytes) -> bool:
    """Tell whether a stream of a PDF, a picture included, unpacks to more than is read of a page."""
    return any(_unpacks_to_more(pdf, found.end()) for found in _STREAM.finditer(pdf))


def _streams(page: Any) -> list[int]:
    forms = [form[0] for form in page.get_xobjects()]
    return [*page.get_contents(), *forms]


def _unpacks_to_more(data: bytes, start: int = 0) -> bool:
    """Tell whether a deflated stream that begins at `start` is longer than is read; no more of it is unpacked.

    What is not deflated, or damaged, the reader finds out.
    """
    unpack = zlib.decompressobj()
    n_bytes = 0
    for place in range(start, len(data), _PART):
        with suppress(zlib.error):
            n_bytes += len(unpack.decompress(data[place : place + _PART], _MAX_BYTES))
            if n_bytes < _MAX_BYTES and not unpack.eof:
                continue
        break
    return n_bytes >= _MAX_BYTES
