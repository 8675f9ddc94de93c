"""The blocks of an HTML page in Markdown: headings, paragraphs, list items, tables, code.

The tree is walked with a stack of its own, since a file may be nested more deeply than Python may recurse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rag_lab.corpus.load.markdown_table import Cell, CellBudget, table_blocks, table_line

_UNREAD = frozenset(["script", "style", "noscript", "template", "nav", "head", "svg", "iframe", "object"])
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(_LEVELS) | {
    *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt"),
    *("fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html", "legend", "li", "main", "ol", "p"),
    *("pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
}
_MAX_DIGITS = 5  # of the number of columns or rows that a cell says it takes


def html_blocks(root: Any) -> list[str]:
    """Return the blocks below `root`, in order.

    Raises:
        LoadError: if the tables have more cells than are read.
    """
    writer = _Writer()
    for event, value in _walk(root):
        writer.write(event, value)
    return writer.finished()


class _Writer:
    """Collects the blocks of a page. While a cell of a table is open, they go into it."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._text: list[str] = []
        self._tables: list[list[list[Cell]]] = []  # open tables; of each its rows
        self._budget = CellBudget()
        self._verbatim = 0
        self._bullet = ""  # of an item of a list whose first text is still to come

    def write(self, event: str, value: Any) -> None:
        """Write an event of `_walk`."""
        if event == "text":
            self._add(value)
        elif event == "start":
            self._start(value)
        else:
            self._end(value.tag)

    def finished(self) -> list[str]:
        """Return the blocks."""
        self._flush("")
        return self._blocks

    def _start(self, element: Any) -> None:
        tag = element.tag
        if tag == "br":
            self._add("\n" if self._verbatim else " ")
        if tag not in _BLOCKS:
            return
        self._flush("")
        self._verbatim += tag == "pre"
        if tag == "li":
            self._bullet = "- "
        if tag == "table":
            self._tables.append([])
        elif self._tables and tag == "tr":
            self._tables[-1].append([])
        elif self._tables and tag in ("td", "th"):
            self._open_cell(element)

    def _open_cell(self, element: Any) -> None:
        rows = self._tables[-1]
        if not rows:
            rows.append([])
        rows[-1].append(Cell([], _span(element, "colspan"), _span(element, "rowspan")))

    def _end(self, tag: str) -> None:
        if tag not in _BLOCKS:
            return
        level = _LEVELS.get(tag, 0)
        self._flush("#" * level + " " if level else "")
        if tag == "li":
            self._bullet = ""
        self._verbatim -= tag == "pre"
        if tag == "table" and self._tables:
            self._close_table(self._tables.pop())

    def _close_table(self, rows: list[list[Cell]]) -> None:
        if blocks := table_blocks(rows, self._budget):
            self._put(table_line(rows) if self._tables else "", "\n\n".join(blocks))

    def _add(self, text: str) -> None:
        if not self._verbatim:  # runs of whitespace are one space, also around an element within a word
            text = " " * text[:1].isspace() + " ".join(text.split()) + " " * text[-1:].isspace()
        self._text.append(text)

    def _flush(self, prefix: str) -> None:
        """End a block."""
        text = "".join(self._text)
        self._text.clear()
        if text.strip() and self._verbatim:
            self._put(text, _fenced(text.strip("\n")))
        elif text := " ".join(text.split()):
            self._put(text, (prefix or self._bullet) + text)
            self._bullet = ""

    def _put(self, line: str, alone: str) -> None:
        """Write a block: as a part of the line of the cell that is open, or as it stands by itself."""
        if cell := self._cell():
            cell.blocks.append((line, alone))
        else:
            self._blocks.append(alone)

    def _cell(self) -> Cell | None:
        """Return the innermost cell that is open."""
        return next((rows[-1][-1] for rows in reversed(self._tables) if rows and rows[-1]), None)


def _fenced(text: str) -> str:
    """Return code between fences that it does not contain, so that none of its lines is taken for a heading."""
    fence = "~~~" if "```" in text else "```"
    return f"{fence}\n{text}\n{fence}"


def _span(element: Any, name: str) -> int:
    """Return how many columns or rows a cell says it takes."""
    value = element.get(name, "").strip()
    return max(1, int(value)) if value.isdecimal() and len(value) <= _MAX_DIGITS else 1


def _walk(root: Any) -> Iterator[tuple[str, Any]]:
    """Yield ("start", element), ("text", text) and ("end", element) in the order of the page."""
    pending: list[tuple[Any, bool]] = [(root, False)]
    while pending:
        element, is_done = pending.pop()
        tag = element.tag if isinstance(element.tag, str) else ""
        if not is_done and tag and tag not in _UNREAD:
            yield "start", element
            yield "text", element.text or ""
            pending.append((element, True))
            pending += [(child, False) for child in reversed(element)]
            continue
        if is_done:
            yield "end", element
        yield "text", element.tail or ""
