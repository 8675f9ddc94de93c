"""Seconds that a memory below a stage has saved it, so that its result costs what it costs alone.

Variants share embeddings and pair scores. The variant that comes second finds them made, and would look quicker than
it is: what they took when they were made is added to its own seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_sums = [0.0]  # one for each open block, and one for calls outside of any


@contextmanager
def counting_replayed() -> Iterator[None]:
    """Begin to count at zero; within the block `replayed_s` tells the sum."""
    _sums.append(0.0)
    try:
        yield
    finally:
        _sums.pop()


def replay(seconds: float) -> None:
    """Say that something which took `seconds` to make was found made."""
    _sums[-1] += seconds


def replayed_s() -> float:
    """Return the seconds that were replayed in the innermost block so far."""
    return _sums[-1]
