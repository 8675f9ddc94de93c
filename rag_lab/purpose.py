"""What this process is doing right now, so that calls of models are booked under the stage or metric they serve.

One name for the process and not for the thread: a stage's calls may come from threads of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_doing = [""]


@contextmanager
def doing(name: str) -> Iterator[None]:
    """Book what is called in this block under `name`."""
    _doing.append(name)
    try:
        yield
    finally:
        _doing.pop()


def current() -> str:
    """Return the name of the innermost block, or ''."""
    return _doing[-1]
