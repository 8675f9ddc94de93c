"""Word files (DOCX) as Markdown: headings by their style, lists, tables with a row a line.

The parts are read directly: the text of content controls, text boxes and accepted changes counts, deleted text and
field codes do not. Elements are those of ECMA-376, part 1, section 17.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rag_lab.corpus.archive import opened_archive, parsed_part
from rag_lab.corpus.base import Loaded, LoadError, parsing
from rag_lab.corpus.tables import markdown_table, too_long
from rag_lab.records import Document

_KIND = "Word document"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_UNREAD = {
    f"{_W}del",
    f"{_W}moveFrom",
    f"{_W}instrText",
    f"{_W}delText",
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",  # repeats what its choice says
}
_BREAKS = {f"{_W}tab": " ", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
_DEEPEST = 6


def load_docx(path: Path, source: str) -> Loaded:
    """Read a Word file; its title is its own, else its first heading.

    Raises:
        LoadError: if the file is empty, encrypted, damaged, too large, or holds no text.
    """
    with opened_archive(path, _KIND) as archive:
        main = parsed_part(archive, "word/document.xml", _KIND)
        styles = parsed_part(archive, "word/styles.xml", _KIND)
        core = parsed_part(archive, "docProps/core.xml", _KIND)
    if main is None:
        raise LoadError(f"the file is no {_KIND} although its name ends so; replace, rename or remove it.")
    with parsing(_KIND):
        levels = _heading_levels(styles)
        blocks, n_too_long = _blocks(main, levels)
        title = (core.findtext(_TITLE) if core is not None else "") or _first_heading(blocks)
    if not blocks:
        raise LoadError("the Word document holds no text; replace or remove it.")
    warnings = (too_long(n_too_long),) if n_too_long else ()
    return Loaded((Document(source, None, "\n\n".join(blocks), title),), warnings)


def _blocks(main: Any, levels: Mapping[str, int]) -> tuple[list[str], int]:
    """Return paragraphs and tables in order, and how many table rows were too long."""
    blocks: list[str] = []
    n_too_long = 0
    pending = [main]
    while pending:
        element = pending.pop()
        if element.tag == f"{_W}p":
            blocks += _paragraph(element, levels)
        elif element.tag == f"{_W}tbl":
            lines, left_out = markdown_table(_rows(element))
            blocks += ["\n".join(lines)] if lines else []
            n_too_long += left_out
        elif element.tag not in _UNREAD:
            pending += reversed(element)
    return blocks, n_too_long


def _paragraph(element: Any, levels: Mapping[str, int]) -> list[str]:
    text = "".join(_texts(element)).strip()
    if not text:
        return []
    style = element.find(f"{_W}pPr/{_W}pStyle")
    level = _outline(element.find(f"{_W}pPr")) or levels.get(style.get(f"{_W}val", "") if style is not None else "", 0)
    if level:
        return [f"{'#' * level} {' '.join(text.split())}"]
    return [f"- {text}"] if element.find(f"{_W}pPr/{_W}numPr") is not None else [text]


def _rows(table: Any) -> Iterator[list[str]]:
    for row in table.iterchildren(f"{_W}tr"):
        yield [" ".join("".join(_texts(p)) for p in cell.iter(f"{_W}p")) for cell in row.iterchildren(f"{_W}tc")]


def _texts(element: Any) -> Iterator[str]:
    """Yield the text below an element, without what is deleted or not meant to be read."""
    pending = [element]
    while pending:
        part = pending.pop()
        if part.tag == f"{_W}t":
            yield part.text or ""
        elif part.tag in _BREAKS:
            yield _BREAKS[part.tag]
        elif part.tag not in _UNREAD:
            pending += reversed(part)


def _heading_levels(styles: Any) -> dict[str, int]:
    """Return the level of each style that makes a heading: by its outline level, its name, or the style it is based on.

    Style ids are translated in other languages' Word, the names of the built-in styles are not.
    """
    if styles is None:
        return {}
    own, based_on = {}, {}
    for style in styles.iterchildren(f"{_W}style"):
        style_id, name = style.get(f"{_W}styleId", ""), _value(style.find(f"{_W}name")).lower()
        number = name.removeprefix("heading ")
        named = int(number) if name.startswith("heading ") and number.isdecimal() else int(name == "title")
        own[style_id] = min(_outline(style.find(f"{_W}pPr")) or named, _DEEPEST)
        based_on[style_id] = _value(style.find(f"{_W}basedOn"))
    return {style_id: level for style_id in own if (level := _inherited(style_id, own, based_on))}


def _inherited(style_id: str, own: Mapping[str, int], based_on: Mapping[str, str]) -> int:
    seen: set[str] = set()
    while style_id in own and style_id not in seen:
        if own[style_id]:
            return own[style_id]
        seen.add(style_id)
        style_id = based_on[style_id]
    return 0


def _outline(properties: Any) -> int:
    """Return the level that an outline level makes, 0 for body text."""
    value = _value(properties.find(f"{_W}outlineLvl")) if properties is not None else ""
    return int(value) + 1 if value.isdecimal() and int(value) < _DEEPEST else 0


def _value(element: Any) -> str:
    return str(element.get(f"{_W}val", "")) if element is not None else ""


def _first_heading(blocks: list[str]) -> str:
    return next((block.lstrip("#").strip() for block in blocks if block.startswith("#")), "")
