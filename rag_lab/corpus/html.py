"""HTML files as Markdown: headings, lists, tables with a row a line; no scripts, styles or menus."""

from __future__ import annotations

from pathlib import Path

from rag_lab.corpus.base import Loaded, LoadError, parsing
from rag_lab.corpus.html_blocks import html_blocks
from rag_lab.corpus.html_encoding import decode_html
from rag_lab.corpus.text import first_line, read_bytes
from rag_lab.records import Document


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
    if not blocks:
        raise LoadError("the HTML file is empty: it holds no text beside its markup; replace or remove it.")
    title = " ".join((root.findtext(".//title") or "").split()) or first_line(blocks[0].lstrip("`~\n")).lstrip("# ")
    return Loaded((Document(source, None, "\n\n".join(blocks), title),), (warning,) if warning else ())
