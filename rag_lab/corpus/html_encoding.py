"""The encoding of an HTML file, as browsers find it out: https://encoding.spec.whatwg.org names what is meant."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress

from rag_lab.corpus.encoding import decode, is_utf8

_META = re.compile(rb"<meta[^>]{0,200}?charset\s{0,5}=\s{0,5}[\"']?\s{0,5}([\w-]{2,40})", re.IGNORECASE)
_XML = re.compile(rb"\s{0,100}<\?xml[^>]{0,200}?encoding\s{0,5}=\s{0,5}[\"']([\w-]{2,40})")
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEAD_BYTES = 4096
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MEANT = {  # what is meant by the encodings that browsers read as larger ones
    **{"ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874"},
    **{"gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs", "shift_jis": "cp932", "euc_kr": "cp949"},
}
_KNOWN = frozenset(_MEANT.values()) | {
    *("cp866", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "euc_jp", "iso2022_jp"),
    *(f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
    *(f"cp125{number}" for number in range(9)),
}


def decode_html(data: bytes) -> tuple[str, str]:
    """Return the text, and a warning where its encoding was guessed ("" else).

    A mark at the beginning counts first; then UTF-8, where there are letters beyond ASCII and all are in it; then what
    the file declares. A file that declares UTF-16 in letters of ASCII is not in it.

    Raises:
        LoadError: if the data are empty or not text.
    """
    encoding = "utf-16" if data.startswith(_WIDE_MARKS) else _declared(data)
    if encoding and not _is_marked_utf8(data):
        with suppress(UnicodeError):  # declared wrongly: found out as for any text
            return data.decode(encoding), ""
    return decode(data)


def _declared(data: bytes) -> str:
    """Return Python's name of the encoding that is meant by the one declared, "" for none that an ASCII file has."""
    head = _COMMENT.sub(b"", data[:_HEAD_BYTES])
    found = _META.search(head) or _XML.match(head)
    with suppress(LookupError):
        name = codecs.lookup(found[1].decode("ascii")).name if found else ""
        name = _MEANT.get(name, name)
        return name if name in _KNOWN else ""
    return ""


def _is_marked_utf8(data: bytes) -> bool:
    """Return whether the data are UTF-8 with letters beyond ASCII: other encodings hardly ever look so."""
    return not data.isascii() and is_utf8(data)
