"""The lines of a text that are Markdown, its headings, and the path of headings above a place. By CommonMark's rules.

One is stricter: the line under a heading has three characters at least, since texts that are not Markdown have lines
of one hyphen.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# A fence may stand in the first line of a list's item, and what follows backticks holds none.
_FENCE = re.compile(r"((?: {0,3}(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)+)?) {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_KEY = re.compile(r"[\w-]+[ \t]*:(?:[ \t]|$)")

_DEEPEST = 6
_MAX_TITLE_CHARS = 200
_UNDERLINE = re.compile(r" {0,3}(={3,}|-{3,})[ \t]*")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})")
_BLOCK = re.compile(r" {0,3}(?:[>|]|[-+*][ \t]|\d{1,9}[.)][ \t])")  # a quote, a table's row, a list's item
_CODE = ("    ", "\t")
_NO_PARAGRAPH = -1  # lists, quotes, tables and code cannot be underlined


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading such as `## Hydraulics`, and where its first line begins and its last one ends."""

    start: int
    end: int
    level: int
    title: str
    path: tuple[str, ...]  # the titles of the headings above it, and its own


def headings(text: str) -> list[Heading]:
    """Return the headings that begin with `#` or are underlined, in order."""
    found: list[Heading] = []
    above: list[tuple[int, str]] = []
    paragraph: int | None = None  # where the one began that the line before belongs to
    for start, line in _markdown_lines(text):
        underline = _UNDERLINE.fullmatch(line)
        if level := _level(line):
            first, title = start, line.strip().lstrip("#").strip()
            opened = title.rstrip("#")  # hashes may close a heading
            title = opened.strip() if opened.endswith((" ", "\t")) else title
        elif underline and paragraph is not None and paragraph != _NO_PARAGRAPH:
            first, level = paragraph, 1 if underline[1][0] == "=" else 2
            title = " ".join(text[paragraph:start].split())
        elif not line.strip() or _RULE.fullmatch(line):
            paragraph = None
            continue
        elif _BLOCK.match(line) or (paragraph is None and line.startswith(_CODE)):
            paragraph = _NO_PARAGRAPH
            continue
        else:
            paragraph = start if paragraph is None else paragraph
            continue
        title = title[:_MAX_TITLE_CHARS]
        above = [*(item for item in above if item[0] < level), (level, title)]
        found.append(Heading(first, start + len(line), level, title, tuple(title for _, title in above)))
        paragraph = None
    return found


def path_at(found: Sequence[Heading], position: int) -> str:
    """Return the path of headings above `position`, as `Manual > Hydraulics` ("" before the first heading)."""
    number = bisect_right(found, position, key=lambda heading: heading.start)
    return " > ".join(found[number - 1].path) if number else ""


def _level(line: str) -> int:
    """Return the level of a heading's line, 0 for any other."""
    marked = line.lstrip(" ")
    level = len(marked) - len(marked.lstrip("#"))
    is_marked = 1 <= level <= _DEEPEST and len(line) - len(marked) <= 3 and marked[level : level + 1] in (" ", "\t")
    return level if is_marked and marked[level:].strip(" \t#") else 0


def body_start(text: str) -> int:
    """Return where a text begins behind its front matter: YAML between `---` and `---` or `...`."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return 0
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
    is_yaml = any(_KEY.match(line) for line in lines[1:end])
    return min(sum(len(line) + 1 for line in lines[: end + 1]), len(text)) if is_yaml else 0


def _markdown_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield where each line behind the front matter begins, and the line; "" for one of fenced code."""
    start = body_start(text)
    fence: re.Match[str] | None = None
    for line in text[start:].split("\n"):
        if fence and line.strip() and _indent(line) < len(fence[1]):  # outside the item of a list that it began in
            fence = None
        if fence:
            bare = line.strip()
            closes = len(bare) >= len(fence[2]) and set(bare) == {fence[2][0]} and _indent(line) <= len(fence[1]) + 3
            yield start, ""
            fence = None if closes else fence
        else:
            fence = _FENCE.match(line)
            yield start, "" if fence else line
        start += len(line) + 1


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
