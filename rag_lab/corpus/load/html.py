"""HTML files as Markdown: headings, lists, tables with a row a line; no scripts, styles or menus.

Their encoding is found out as browsers do: https://encoding.spec.whatwg.org names what is meant.

The tree is walked with an explicit stack, since a file may be nested more deeply than Python may recurse.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from rag_lab.corpus.load.delimited import Cell, CellBudget, table_blocks, table_line
from rag_lab.corpus.load.loader import Loaded, LoadError, parsing
from rag_lab.corpus.load.text import WIDE_MARKS, decode, first_line, is_utf8, read_bytes
from rag_lab.records import Document

_NOT_READ = frozenset(["script", "style", "noscript", "template", "nav", "head", "svg", "iframe", "object"])
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(_LEVELS) | {
    *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt"),
    *("fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html", "legend", "li", "main", "ol", "p"),
    *("pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
}
_MAX_DIGITS = 5  # of the number of columns or rows that a cell says it takes
_DECLARED = re.compile(
    rb"(?:<meta[^>]{0,200}?charset|\A\s{0,100}<\?xml[^>]{0,200}?encoding)\s{0,5}=\s{0,5}[\"']?\s{0,5}([\w.:-]{2,40})",
    re.IGNORECASE,
)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEAD_BYTES = 4096
_NOT_BELIEVED = ("utf-16le", "utf-16be", "replacement", "x-user-defined")  # who declares it in ASCII means another
_EMPTY = "the HTML file is empty: it holds no text beside its markup; replace or remove it."
_TOO_DEEP = "the HTML file nests elements too deeply: what follows the 256th level was not read; close its tags."


def html_blocks(root: Any) -> list[str]:
    """Return the blocks below `root`, in order."""
    writer = _Writer()
    pending: list[tuple[Any, bool]] = [(root, False)]  # elements, and whether all in them was read
    while pending:
        element, is_done = pending.pop()
        if is_done:
            writer.end(element.tag)
        elif isinstance(element.tag, str) and element.tag not in _NOT_READ:
            writer.start(element)
            writer.add(element.text or "")
            pending.append((element, True))
            pending += [(child, False) for child in reversed(element)]
            continue
        writer.add(element.tail or "")
    writer.flush("")
    return writer.blocks


class _Writer:
    """Collects the blocks of a page. While a cell of a table is open, they go into it."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self._text: list[str] = []
        self._tables: list[list[list[Cell]]] = []  # open tables; of each its rows
        self._budget = CellBudget()
        self._verbatim = 0
        self._bullet = ""  # of an item of a list whose first text is still to come

    def start(self, element: Any) -> None:
        tag = element.tag
        if tag == "br":
            self.add("\n" if self._verbatim else " ")
        if tag not in _BLOCKS:
            return
        self.flush("")
        self._verbatim += tag == "pre"
        if tag == "li":
            self._bullet = "- "
        if tag == "table":
            self._tables.append([])
        elif self._tables and tag == "tr":
            self._tables[-1].append([])
        elif self._tables and tag in ("td", "th"):
            rows = self._tables[-1]
            if not rows:
                rows.append([])
            stated = (element.get(name, "").strip() for name in ("colspan", "rowspan"))
            counts = (int(n) if n.isdecimal() and len(n) <= _MAX_DIGITS else 1 for n in stated)
            rows[-1].append(Cell([], *(max(1, n) for n in counts)))

    def end(self, tag: str) -> None:
        if tag not in _BLOCKS:
            return
        level = _LEVELS.get(tag, 0)
        self.flush("#" * level + " " if level else "")
        if tag == "li":
            self._bullet = ""
        self._verbatim -= tag == "pre"
        if tag == "table" and self._tables:
            rows = self._tables.pop()
            if blocks := table_blocks(rows, self._budget):
                self._put(table_line(rows) if self._tables else "", "\n\n".join(blocks))

    def add(self, text: str) -> None:
        if not self._verbatim:  # runs of whitespace are one space, also around an element within a word
            text = " " * text[:1].isspace() + " ".join(text.split()) + " " * text[-1:].isspace()
        self._text.append(text)

    def flush(self, prefix: str) -> None:
        """End a block."""
        text = "".join(self._text)
        self._text.clear()
        if text.strip() and self._verbatim:
            fence = "~~~" if "```" in text else "```"  # so that no line of code is taken for a heading
            self._put(text, "\n".join((fence, text.strip("\n"), fence)))
        elif text := " ".join(text.split()):
            self._put(text, (prefix or self._bullet) + text)
            self._bullet = ""

    def _put(self, line: str, alone: str) -> None:
        """Write a block: as a part of the line of the cell that is open, or as it stands by itself."""
        if cell := next((rows[-1][-1] for rows in reversed(self._tables) if rows and rows[-1]), None):
            cell.blocks.append((line, alone))
        else:
            self.blocks.append(alone)


def load_html(path: Path, source: str) -> Loaded:
    """Read an HTML file; its title is its own, else its first heading or line."""
    from lxml import etree

    text, warning = decode_html(read_bytes(path))
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    with parsing("HTML file"):
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
        blocks = html_blocks(root) if root is not None else []
    is_cut = any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log)
    if not blocks:
        raise LoadError(_TOO_DEEP if is_cut else _EMPTY)
    title = " ".join((root.findtext(".//title") or "").split()) or first_line(blocks[0].lstrip("`~\n")).lstrip("# ")
    warnings = (warning, _TOO_DEEP if is_cut else "")
    return Loaded((Document(source, None, "\n\n".join(blocks), title),), tuple(filter(None, warnings)))


def decode_html(data: bytes) -> tuple[str, str]:
    """Return the text, and a warning where its encoding was guessed ("" else).

    A mark at the beginning counts first; then UTF-8, where there are letters beyond ASCII and all are in it; then what
    the file declares. A file that declares UTF-16 in letters of ASCII is not in it.
    """
    from webencodings import lookup

    codec = ""
    if data.startswith(WIDE_MARKS):
        codec = "utf-16"
    elif found := _DECLARED.search(_COMMENT.sub(b"", data[:_HEAD_BYTES])):
        encoding = lookup(found[1].decode("ascii", "replace"))
        if encoding and encoding.name not in _NOT_BELIEVED:  # the standard reads GBK as its superset
            codec = "gb18030" if encoding.name == "gbk" else str(encoding.codec_info.name)
    if codec and (data.isascii() or not is_utf8(data)):  # other encodings hardly ever look like UTF-8
        with suppress(UnicodeError):  # declared wrongly: found out as for any text
            return data.decode(codec), ""
    return decode(data)
