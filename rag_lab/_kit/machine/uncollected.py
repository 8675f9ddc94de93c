"""Work that makes very many objects, nearly all of which stay: looking among them for garbage finds none, and takes a
quarter of the time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = (50_000, 20, 20)  # of Python's own 700, 10, 10: imports make very many objects, too


def collect_seldom() -> None:
    """Look for garbage less often in this process from now on, and in those that are forked from it."""
    gc.set_threshold(*_SELDOM)


@contextmanager
def without_collection() -> Iterator[None]:
    """Leave cycles of objects uncollected in this block; what nobody refers to is still freed at once."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
