"""Word files (DOCX) as Markdown: a library makes HTML of them, which the reader of HTML takes.

The library gets a copy whose XML parts were parsed before, without entities, and whose headings say their level.
"""

import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from rag_lab.corpus.load.html import html_blocks
from rag_lab.corpus.load.loader import Loaded, LoadError, parsing
from rag_lab.corpus.load.spreadsheet import opened_archive, parsed_part, stated_title
from rag_lab.records import Document

_KIND = "Word document"
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
    with opened_archive(path, _KIND) as archive, parsing(_KIND):
        archive.max_tags = _MAX_TAGS
        names = [name for name in archive.namelist() if name.endswith((".xml", ".rels"))]
        parts = {name: parsed_part(archive, name, _KIND) for name in dict.fromkeys(names)}
        title = stated_title(archive, _KIND)
    if not any(part.tag == f"{_W}document" for part in parts.values()):
        raise LoadError(f"the file is no {_KIND} although its name ends so; replace, rename or remove it.")
    with parsing(_KIND):
        blocks, messages = _read(parts)
    if not blocks:
        raise LoadError(f"the {_KIND} holds no text; replace or remove it.")
    heading = next((block.lstrip("#").strip() for block in blocks if block.startswith("#")), "")
    return Loaded((Document(source, None, "\n\n".join(blocks), title or heading),), tuple(_left_out(parts, messages)))


def _read(parts: Mapping[str, Any]) -> tuple[list[str], list[str]]:
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
        raise LoadError(f"the {_KIND} is damaged ({error}); replace or remove it.") from error
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


def _left_out(parts: Mapping[str, Any], messages: list[str]) -> Iterator[str]:
    """Yield what held text and was not read, and what else the library says of what it could not use."""
    ignored = [*(re.split("[:}]", message)[-1] for message in messages if message.startswith(_IGNORED)), "hdr", "ftr"]
    words: dict[str, None] = {}
    for name in ignored:
        found = (element for part in parts.values() for element in part.iter(f"{{*}}{name}"))
        if any(map(str.isalnum, chain.from_iterable("".join(element.itertext()) for element in found))):
            words[_WORDS.get(name, name)] = None
    if words:
        yield f"{', '.join(words)} left out; write what matters of them as text."
    for message in messages:
        if not message.startswith(_IGNORED) and not _NO_LOSS.search(message):
            yield message.rstrip(".") + "."
