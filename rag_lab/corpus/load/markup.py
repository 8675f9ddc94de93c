"""HTML and Word files as Markdown: headings, lists, tables with a row a line; no scripts, styles or menus.

The encoding of HTML is found out as browsers do: https://encoding.spec.whatwg.org names what is meant. The tree is
walked with an explicit stack, since a file may be nested more deeply than Python may recurse.

Of a Word file (DOCX) a library makes HTML. It gets a copy whose XML parts were parsed before, without entities, and
whose headings say their level.
"""

import io
import re
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from rag_lab.corpus.load import tables
from rag_lab.corpus.load.loader import WIDE_MARKS, Loaded, LoadError, decode, first_line, is_utf8, parsing, read_bytes
from rag_lab.records import Document

_NOT_READ = frozenset(["script", "style", "noscript", "template", "nav", "head", "svg", "iframe", "object"])
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(_LEVELS) | {
    *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt"),
    *("fieldset", "figcaption", "figure", "footer", "form", "header", "hr", "html", "legend", "li", "main", "ol", "p"),
    *("pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
}
_MAX_DIGITS = 5  # of the number of columns or rows that a cell says it takes
_DECLARED_ENCODING = re.compile(
    rb"(?:<meta[^>]{0,200}?charset|\A\s{0,100}<\?xml[^>]{0,200}?encoding)\s{0,5}=\s{0,5}[\"']?\s{0,5}([\w.:-]{2,40})",
    re.IGNORECASE,
)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEAD_BYTES = 4096
_NOT_BELIEVED = ("utf-16le", "utf-16be", "replacement", "x-user-defined")  # who declares it in ASCII means another
_NO_TEXT = "the HTML file is empty: it holds no text beside its markup; replace or remove it."
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


@dataclass
class _Writer:
    """Collects the blocks of a page. While a cell of a table is open, they go into it."""

    blocks: list[str] = field(default_factory=list)
    _text: list[str] = field(default_factory=list)
    _tables: list[list[list[tables.Cell]]] = field(default_factory=list)  # open tables; of each its rows
    _budget: tables.CellBudget = field(default_factory=tables.CellBudget)
    _verbatim: int = 0
    _bullet: str = ""  # of an item of a list whose first text is still to come

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
            rows[-1].append(tables.Cell([], *(max(1, n) for n in counts)))

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
            if blocks := tables.table_blocks(rows, self._budget):
                texts = ([" ".join(cell.text.split()) for cell in row] for row in rows)
                line = "; ".join(", ".join(filter(None, row)) for row in texts if any(row))
                self._put(line if self._tables else "", "\n\n".join(blocks))  # in a cell, as a part of its line

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
        raise LoadError(_TOO_DEEP if is_cut else _NO_TEXT)
    title = " ".join((root.findtext(".//title") or "").split()) or first_line(blocks[0].lstrip("`~\n")).lstrip("# ")
    warnings = (warning, _TOO_DEEP if is_cut else "")
    return Loaded((Document(source, None, "\n\n".join(blocks), title),), tuple(filter(None, warnings)))


def decode_html(data: bytes) -> tuple[str, str]:
    """Return the text, and a warning where its encoding was guessed ("" else).

    A mark at the beginning counts first; then UTF-8, where letters beyond ASCII are all in it; then what the file
    declares, but for UTF-16 that is declared in letters of ASCII.
    """
    from webencodings import lookup

    codec = ""
    if data.startswith(WIDE_MARKS):
        codec = "utf-16"
    elif found := _DECLARED_ENCODING.search(_COMMENT.sub(b"", data[:_HEAD_BYTES])):
        encoding = lookup(found[1].decode("ascii", "replace"))
        if encoding and encoding.name not in _NOT_BELIEVED:  # the standard reads GBK as its superset
            codec = "gb18030" if encoding.name == "gbk" else str(encoding.codec_info.name)
    if codec and (data.isascii() or not is_utf8(data)):  # other encodings hardly ever look like UTF-8
        with suppress(UnicodeError):  # declared wrongly: found out as for any text
            return data.decode(codec), ""
    return decode(data)


_WORD = "Word document"
_MAX_TAGS = 550_000  # with attributes; the library holds some 1 KiB for each
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_READ_AS = {"fldSimple": "smartTag", "dir": "smartTag", "bdo": "smartTag", "cr": "br", "ptab": "tab"}  # of one meaning
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_DEEPEST = 6  # level of a heading; 9 is text
_LONGEST = 10  # chain of styles, each based on the next
_IGNORED = "An unrecognised element was ignored: "
_NO_LOSS = re.compile(r"style|[Ii]mage")  # messages about looks and pictures
_WORDS = {"oMath": "equations", "oMathPara": "equations", "hdr": "headers", "ftr": "footers"}


def load_docx(path: Path, source: str) -> Loaded:
    """Read a Word file; its title is its own, else its first heading."""
    with tables.opened_archive(path, _WORD) as archive, parsing(_WORD):
        archive.max_tags = _MAX_TAGS
        names = [name for name in archive.namelist() if name.endswith((".xml", ".rels"))]
        parts = {name: tables.parsed_part(archive, name, _WORD) for name in dict.fromkeys(names)}
        title = tables.stated_title(archive, _WORD)
    if not any(part.tag == f"{_W}document" for part in parts.values()):
        raise LoadError(f"the file is no {_WORD} although its name ends so; replace, rename or remove it.")
    with parsing(_WORD):
        blocks, messages = _read_parts(parts)
    if not blocks:
        raise LoadError(f"the {_WORD} holds no text; replace or remove it.")
    heading = next((block.lstrip("#").strip() for block in blocks if block.startswith("#")), "")
    left_out: dict[str, None] = {}  # what held text and was not read
    ignored = [*(re.split("[:}]", message)[-1] for message in messages if message.startswith(_IGNORED)), "hdr", "ftr"]
    for name in ignored:
        found = (element for part in parts.values() for element in part.iter(f"{{*}}{name}"))
        if any(map(str.isalnum, chain.from_iterable("".join(element.itertext()) for element in found))):
            left_out[_WORDS.get(name, name)] = None
    warnings = [f"{', '.join(left_out)} left out; write what matters of them as text."] if left_out else []
    # What else the library says of what it could not use.
    others = (one for one in messages if not one.startswith(_IGNORED) and not _NO_LOSS.search(one))
    warnings += [message.rstrip(".") + "." for message in others]
    return Loaded((Document(source, None, "\n\n".join(blocks), title or heading),), tuple(warnings))


def _read_parts(parts: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the blocks of a file, and what the library says of it."""
    import mammoth
    from lxml import etree

    styles = {style.get(f"{_W}styleId"): style for part in parts.values() for style in part.iterchildren(f"{_W}style")}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as copy:
        for name, part in parts.items():
            _plain(part, styles)
            copy.writestr(name, etree.tostring(part))
    try:
        styling = "p[style-name='Title'] => h1:fresh"
        html = mammoth.convert_to_html(buffer, style_map=styling, include_embedded_style_map=False)
    except OSError as error:  # the library's, of a part that is not there
        raise LoadError(f"the {_WORD} is damaged ({error}); replace or remove it.") from error
    root = etree.fromstring(f"<html><body>{html.value}</body></html>", etree.HTMLParser(no_network=True))
    # Notes as in Markdown: `[^1]` where they are referred to, and before them.
    for link in root.xpath("//a[contains(@id, 'note-ref-')]"):
        link.text = f"[^{link.text.strip('[]')}]"
    for number, note in enumerate(root.xpath("//li[starts-with(@id, 'footnote-') or starts-with(@id, 'endnote-')]"), 1):
        text = " ".join(" ".join("".join(child.itertext()) for child in note).removesuffix("↑").split())
        for child in list(note):
            note.remove(child)
        note.tag, note.text = "p", f"[^{number}]: {text}"
    return html_blocks(root), [message.message for message in html.messages]


def _plain(part: Any, styles: Mapping[str, Any]) -> None:
    """Say in ways that the library knows what Word can say in others."""
    for style in part.iter(f"{_W}style"):
        style.set(f"{_W}type", style.get(f"{_W}type", "paragraph"))  # as the format has it
    for name, other in _READ_AS.items():
        for element in part.iter(f"{_W}{name}"):
            element.tag = f"{_W}{other}"
    for element in part.xpath("//*[@r:*]", namespaces={"r": _R[1:-1]}):  # links and pictures, which are not read
        for key in [key for key in element.attrib if key.startswith(_R)]:
            del element.attrib[key]
    for row in part.iter(f"{_W}tr"):
        before = _value(row, f"trPr/{_W}gridBefore")
        if before.isdecimal() and int(before):  # the row begins in a later column: an empty cell takes those before it
            row.insert(0, cell := row.makeelement(f"{_W}tc"))
            cell.append(properties := cell.makeelement(f"{_W}tcPr"))
            properties.append(cell.makeelement(f"{_W}gridSpan", {f"{_W}val": before}))
    for hyphen in part.iter(f"{_W}noBreakHyphen"):
        hyphen.tag, hyphen.text = f"{_W}t", "-"
    for choice in part.iter(f"{_MC}Choice"):
        if choice.getparent().find(f"{_MC}Fallback") is None:
            choice.tag = f"{_MC}Fallback"
    for properties in part.iter(f"{_W}pPr"):
        style = properties.find(f"{_W}pStyle")
        level = _value(properties, "outlineLvl") or _inherited_level(_value(properties, "pStyle"), styles)
        if level.isdecimal() and int(level) < _DEEPEST:
            style = properties.makeelement(f"{_W}pStyle") if style is None else style
            style.set(f"{_W}val", f"Heading{int(level) + 1}")
            properties.insert(0, style)


def _inherited_level(style_id: str, styles: Mapping[str, Any]) -> str:
    """Return the outline level of a style, or of one that it is based on; they may go round in a circle."""
    for _ in range(_LONGEST):
        style = styles.get(style_id)
        if style is None:
            return ""
        if level := _value(style, f"pPr/{_W}outlineLvl"):
            return level
        name = _value(style, "name").lower().removeprefix("heading ")
        if name in set("123456"):
            return str(int(name) - 1)
        style_id = _value(style, "basedOn")
    return ""


def _value(element: Any, name: str) -> str:
    found = element.find(f"{_W}{name}")
    return str(found.get(f"{_W}val", "")) if found is not None else ""
