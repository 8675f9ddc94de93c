"""HTML files as Markdown: headings, lists, tables with a row a line; no scripts, styles or menus."""

from __future__ import annotations

from pathlib import Path

from rag_lab.corpus.load.html_blocks import html_blocks
from rag_lab.corpus.load.html_encoding import decode_html
from rag_lab.corpus.load.loader import Loaded, LoadError, parsing
from rag_lab.corpus.load.text import first_line, read_bytes
from rag_lab.records import Document

_EMPTY = "the HTML file is empty: it holds no text beside its markup; replace or remove it."
_TOO_DEEP = "the HTML file nests elements too deeply: what follows the 256th level was not read; close its tags."


def load_html(path: Path, source: str) -> Loaded:
    """Read an HTML file; its title is its own, else its first heading or line.

    Raises:
        LoadError: if the file is empty, too long, not text, or holds no text beside its markup.
    """
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
