"""HTML files as Markdown: headings, lists, tables with a row a line; no scripts, styles or menus.

Their encoding is found out as browsers do: https://encoding.spec.whatwg.org names what is meant.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from rag_lab.corpus.load.encoding import WIDE_MARKS, decode, is_utf8
from rag_lab.corpus.load.html_blocks import html_blocks
from rag_lab.corpus.load.loader import Loaded, LoadError, parsing
from rag_lab.corpus.load.text import first_line, read_bytes
from rag_lab.records import Document

_DECLARED = re.compile(
    rb"(?:<meta[^>]{0,200}?charset|\A\s{0,100}<\?xml[^>]{0,200}?encoding)\s{0,5}=\s{0,5}[\"']?\s{0,5}([\w.:-]{2,40})",
    re.IGNORECASE,
)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEAD_BYTES = 4096
_NOT_BELIEVED = ("utf-16le", "utf-16be", "replacement", "x-user-defined")  # who declares it in ASCII means another

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


def decode_html(data: bytes) -> tuple[str, str]:
    """Return the text, and a warning where its encoding was guessed ("" else).

    A mark at the beginning counts first; then UTF-8, where there are letters beyond ASCII and all are in it; then what
    the file declares. A file that declares UTF-16 in letters of ASCII is not in it.

    Raises:
        LoadError: if the data are empty or not text.
    """
    codec = "utf-16" if data.startswith(WIDE_MARKS) else _declared(data)
    if codec and (data.isascii() or not is_utf8(data)):  # other encodings hardly ever look like UTF-8
        with suppress(UnicodeError):  # declared wrongly: found out as for any text
            return data.decode(codec), ""
    return decode(data)


def _declared(data: bytes) -> str:
    """Return Python's name of the encoding that is meant by the one declared, "" for none that an ASCII file has."""
    from webencodings import lookup

    found = _DECLARED.search(_COMMENT.sub(b"", data[:_HEAD_BYTES]))
    encoding = lookup(found[1].decode("ascii", "replace")) if found else None
    if encoding is None or encoding.name in _NOT_BELIEVED:
        return ""
    return "gb18030" if encoding.name == "gbk" else str(encoding.codec_info.name)  # the standard reads GBK so, too
