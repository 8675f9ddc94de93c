"""The styles of a Word file: which make a heading, and of which level, and which make an item of a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_DEEPEST = 6


class Styles:
    """What a paragraph is by its own properties, else by its style, else by a style that its style is based on.

    Style ids are translated in other languages' Word, the names of the built-in styles are not.
    """

    def __init__(self, root: Any) -> None:
        self._headings: dict[str, str] = {}
        self._lists: dict[str, str] = {}
        self._based_on: dict[str, str] = {}
        for style in root.iterchildren(f"{W}style") if root is not None else ():
            style_id, properties = style.get(f"{W}styleId", ""), style.find(f"{W}pPr")
            self._headings[style_id] = _outline(properties) or _named_heading(value(style.find(f"{W}name")))
            self._lists[style_id] = _numbering(properties)
            self._based_on[style_id] = value(style.find(f"{W}basedOn"))

    def prefix(self, paragraph: Any) -> str:
        """Return what a paragraph begins with in Markdown: hashes for a heading, a hyphen for an item of a list."""
        properties = paragraph.find(f"{W}pPr")
        style_id = value(properties.find(f"{W}pStyle")) if properties is not None else ""
        if hashes := _outline(properties) or self._inherited(style_id, self._headings):
            return hashes
        numbering = _numbering(properties) or self._inherited(style_id, self._lists)
        return "- " if numbering not in ("", "0") else ""  # list 0 takes a paragraph out of its style's list

    def _inherited(self, style_id: str, own: Mapping[str, str]) -> str:
        """Return the first that is set of a style and those it is based on, which may go round in a circle."""
        seen: set[str] = set()
        while style_id in own and style_id not in seen:
            if own[style_id]:
                return own[style_id]
            seen.add(style_id)
            style_id = self._based_on[style_id]
        return ""


def value(element: Any) -> str:
    """Return the value of an element of properties, "" where there is none."""
    return str(element.get(f"{W}val", "")) if element is not None else ""


def _named_heading(name: str) -> str:
    """Return the hashes of a built-in style."""
    name = name.lower()
    number = name.removeprefix("heading ")
    level = int(number) if name.startswith("heading ") and number.isdecimal() else int(name == "title")
    return _hashes(min(level, _DEEPEST))


def _outline(properties: Any) -> str:
    """Return the hashes of an outline level, "" for body text."""
    level = value(properties.find(f"{W}outlineLvl")) if properties is not None else ""
    return _hashes(int(level) + 1) if level.isdecimal() and int(level) < _DEEPEST else ""


def _numbering(properties: Any) -> str:
    """Return the number of the list that a paragraph or style belongs to, "" where nothing is said of lists."""
    numbering = properties.find(f"{W}numPr") if properties is not None else None
    return (value(numbering.find(f"{W}numId")) or "1") if numbering is not None else ""


def _hashes(level: int) -> str:
    return "#" * level + " " if level else ""
