"""The headings of a Markdown text, and the path of headings above a place in it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

_DEEPEST = 6
_MAX_TITLE_CHARS = 200
_FENCES = ("```", "~~~")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading such as `## Hydraulics`, and where its line begins."""

    start: int
    level: int
    title: str
    path: tuple[str, ...]  # the titles of the headings above it, and its own


def headings(text: str) -> list[Heading]:
    """Return the headings that begin with `#`, in order; those in fenced code are none."""
    found: list[Heading] = []
    above: list[tuple[int, str]] = []
    start, fence = 0, ""
    for line in text.split("\n"):
        bare = line.strip()
        if fence:
            fence = "" if bare.startswith(fence) else fence
        elif bare.startswith(_FENCES):
            fence = bare[:3]
        elif level := _level(line):
            above = [item for item in above if item[0] < level]
            above.append((level, _title(bare)))
            found.append(Heading(start, level, above[-1][1], tuple(title for _, title in above)))
        start += len(line) + 1
    return found


def path_at(found: Sequence[Heading], position: int) -> str:
    """Return the path of headings above `position`, as `Manual > Hydraulics` ("" before the first heading)."""
    number = bisect_right(found, position, key=lambda heading: heading.start)
    return " > ".join(found[number - 1].path) if number else ""


def _level(line: str) -> int:
    """Return the level of a heading's line, 0 for any other."""
    level = len(line) - len(line.lstrip("#"))
    is_heading = 1 <= level <= _DEEPEST and line[level : level + 1] in (" ", "\t") and line[level:].strip(" \t#")
    return level if is_heading else 0


def _title(bare: str) -> str:
    """Return a heading's text, without the hashes that may close it."""
    title = bare.lstrip("#").strip()
    opened = title.rstrip("#")
    return (opened.strip() if opened.endswith((" ", "\t")) else title)[:_MAX_TITLE_CHARS]
