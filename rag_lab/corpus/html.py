"""HTML files as Markdown: headings, lists, tables with a row a line; no scripts, styles or menus.

The tree is walked with a stack of its own, since a file may be nested more deeply than Python may recurse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from rag_lab.corpus.base import Loaded, LoadError, parsing
from rag_lab.corpus.encoding import decode
from rag_lab.corpus.tables import markdown_table, too_long
from rag_lab.corpus.text import first_line, read_bytes
from rag_lab.records import Document

_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s{0,5}=\s{0,5}[\"']?\s{0,5}([\w-]{2,40})", re.IGNORECASE)
_HEAD_BYTES = 4096
_UNREAD = frozenset(["script", "style", "noscript", "template", "nav", "head", "svg", "iframe", "object"])
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(_LEVELS) | {
    *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt"),
    *("fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html", "legend", "li", "main", "ol", "p"),
    *("pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
}


def load_html(path: Path, source: str) -> Loaded:
    """Read an HTML file; its title is its own, else its first heading or line.

    Raises:
        LoadError: if the file is empty, too long, not text, or holds no text beside its markup.
    """
    from lxml import etree

    text, warning = _decode(read_bytes(path))
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    with parsing("HTML file"):
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
        writer = _Writer()
        if root is not None:
            writer.write(root)
    if not writer.blocks:
        raise LoadError("the HTML file is empty: it holds no text beside its markup; replace or remove it.")
    warnings = [warning] if warning else []
    if writer.n_too_long:
        warnings.append(too_long(writer.n_too_long))
    title = " ".join((root.findtext(".//title") or "").split()) or first_line(writer.blocks[0]).lstrip("# ")
    return Loaded((Document(source, None, "\n\n".join(writer.blocks), title),), tuple(warnings))


def _decode(data: bytes) -> tuple[str, str]:
    """Return the text by the encoding that the file declares, where it does and the text is in it."""
    declared = _DECLARED.search(data, 0, _HEAD_BYTES)
    if declared:
        with suppress(LookupError, UnicodeError):  # declared wrongly: found out as for any text
            return data.decode(declared[1].decode("ascii")), ""
    return decode(data)


class _Writer:
    """Collects the blocks of a page. While a table is open, text goes into its cells."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.n_too_long = 0
        self._text: list[str] = []
        self._tables: list[list[list[list[str]]]] = []  # open tables; of each its rows, their cells, their texts
        self._verbatim = 0

    def write(self, root: Any) -> None:
        """Write the tree below `root`."""
        for event, value in _walk(root):
            if event == "text":
                self._add(value)
            elif event == "start":
                self._start(value)
            else:
                self._end(value)
        self._flush("")

    def _start(self, tag: str) -> None:
        if tag == "br":
            self._add("\n" if self._verbatim else " ")
        if tag not in _BLOCKS:
            return
        self._flush("")
        self._verbatim += tag == "pre"
        if tag == "table":
            self._tables.append([])
        elif self._tables and tag == "tr":
            self._tables[-1].append([])
        elif self._tables and tag in ("td", "th"):
            if not self._tables[-1]:
                self._tables[-1].append([])
            self._tables[-1][-1].append([])

    def _end(self, tag: str) -> None:
        if tag not in _BLOCKS:
            return
        level = _LEVELS.get(tag, 0)
        self._flush("#" * level + " " if level else "- " if tag == "li" else "")
        self._verbatim -= tag == "pre"
        if tag == "table" and self._tables:
            self._close_table()

    def _close_table(self) -> None:
        rows = [["".join(cell) for cell in row] for row in self._tables.pop()]
        if self._tables:  # a table in a cell is a line of that cell's text
            self._add(" " + "; ".join(", ".join(" ".join(cell.split()) for cell in row) for row in rows) + " ")
            return
        lines, left_out = markdown_table(rows)
        self.n_too_long += left_out
        if lines and len(lines[0].split(" | ")) == 1:  # one column: a frame, not a table
            lines = [line.strip("| ") for number, line in enumerate(lines) if number != 1]
        if lines:
            self.blocks.append("\n".join(lines))

    def _add(self, text: str) -> None:
        if not self._verbatim:  # runs of whitespace are one space, also around an element within a word
            text = " " * text[:1].isspace() + " ".join(text.split()) + " " * text[-1:].isspace()
        self._text.append(text)

    def _flush(self, prefix: str) -> None:
        """End a block; in a table it ends a line of the cell."""
        joined = "".join(self._text)
        self._text.clear()
        text = joined.strip("\n") if self._verbatim else " ".join(joined.split())
        if not text.strip():
            return
        if self._tables and self._tables[-1] and self._tables[-1][-1]:
            self._tables[-1][-1][-1].append(text + " ")
        else:
            self.blocks.append(prefix + text)


def _walk(root: Any) -> Iterator[tuple[str, str]]:
    """Yield ("start", tag), ("text", text) and ("end", tag) in the order of the page."""
    pending: list[tuple[Any, bool]] = [(root, False)]
    while pending:
        element, is_done = pending.pop()
        tag = element.tag if isinstance(element.tag, str) else ""
        if not is_done and tag and tag not in _UNREAD:
            yield "start", tag
            yield "text", element.text or ""
            pending.append((element, True))
            pending += [(child, False) for child in reversed(element)]
            continue
        if is_done:
            yield "end", tag
        yield "text", element.tail or ""
