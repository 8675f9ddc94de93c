"""How counts and lists are written in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(n: int, noun: str) -> str:
    """Write a count with its noun: `1 question`, `1,200 questions`."""
    return f"1 {noun}" if n == 1 else f"{n:,} {noun}s"


def listing(names: Sequence[str]) -> str:
    """Write one or more names as a list: `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def some_of(names: Sequence[str], most: int = 10) -> str:
    """Write the first of many names as a list: `a, b and 12 more`; "" where there are none."""
    rest = [f"{len(names) - most:,} more"] if len(names) > most else []
    return listing([*names[:most], *rest]) if names else ""


def letters(index: int) -> str:
    """Return A … Z, AA, AB, … for 0, 1, …"""
    head, tail = divmod(index, 26)
    return (letters(head - 1) if head else "") + chr(ord("A") + tail)


def short_verdict(verdict: str) -> str:
    """Write a verdict for a table, beside the difference that it is about: `30 questions could have shown …`."""
    return verdict.removeprefix("the data cannot tell: ")
