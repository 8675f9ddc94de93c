"""The lines of a Markdown text that are Markdown: neither front matter nor fenced code. The rules are CommonMark's."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A fence may stand in the first line of a list's item, and what follows backticks holds none.
_FENCE = re.compile(r"((?: {0,3}(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)+)?) {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_KEY = re.compile(r"[\w-]+[ \t]*:(?:[ \t]|$)")


def body_start(text: str) -> int:
    """Return where a text begins behind its front matter: YAML between `---` and `---` or `...`."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return 0
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
    is_yaml = any(_KEY.match(line) for line in lines[1:end])
    return min(sum(len(line) + 1 for line in lines[: end + 1]), len(text)) if is_yaml else 0


def markdown_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield where each line behind the front matter begins, and the line; "" for one of fenced code."""
    start = body_start(text)
    fence: re.Match[str] | None = None
    for line in text[start:].split("\n"):
        if fence and _has_left(fence, line):
            fence = None
        if fence:
            yield start, ""
            fence = None if _closes(fence, line) else fence
        else:
            fence = _FENCE.match(line)
            yield start, "" if fence else line
        start += len(line) + 1


def _has_left(fence: re.Match[str], line: str) -> bool:
    """Tell whether a line no longer belongs to the list's item that the fence is in."""
    return bool(line.strip()) and _indent(line) < len(fence[1])


def _closes(fence: re.Match[str], line: str) -> bool:
    bare = line.strip()
    is_fence = len(bare) >= len(fence[2]) and set(bare) == {fence[2][0]}
    return is_fence and _indent(line) <= len(fence[1]) + 3


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
