"""Plain text and Markdown files: one document without pages."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from rag_lab.corpus.base import Loaded, LoadError
from rag_lab.records import Document

_UNICODE_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WIDE = ["utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le", "utf_7"]
_MAINFRAME = ["cp037", "cp273", "cp424", "cp500", "cp875", "cp1026", "cp1140"]
_WESTERN = frozenset(
    "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜßàáâãäåæçèéêëìíîïñòóôõöøùúûüÿŒœŠšŽžŸ°±²³µ·×÷½¼¾€£§©®™¡¿«»‘’‚“”„–—…•\xa0\xad"
)
_MAX_WESTERN_SHARE = 0.3  # Latin text has few letters with marks; a text full of them is another script
_MAX_MESS = 0.1  # charset-normalizer's share of implausible characters above which a guess is not worth having
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
_TITLE_CHARS = 200


def load_text(path: Path, source: str) -> Loaded:
    """Read a plain text file; its title is its first line that is not blank.

    Raises:
        LoadError: if the file is empty or not text.
    """
    text, warnings = _read(path)
    return Loaded((Document(source, None, text, first_line(text)),), warnings)


def load_markdown(path: Path, source: str) -> Loaded:
    """Read a Markdown file as it stands; its title is its first heading, else its first line.

    Raises:
        LoadError: if the file is empty or not text.
    """
    text, warnings = _read(path)
    heading = _HEADING.search(text)
    title = heading[1][:_TITLE_CHARS] if heading else first_line(text)
    return Loaded((Document(source, None, text, title),), warnings)


def first_line(text: str) -> str:
    """Return the first line that is not blank, stripped and cut to a title's length ("" where there is none)."""
    stripped = text.strip()
    return stripped.splitlines()[0].strip()[:_TITLE_CHARS] if stripped else ""


def _read(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the text with line ends as `\\n`, and a warning where its encoding had to be guessed."""
    data = path.read_bytes()
    text, guess = _decode(data)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise LoadError("the file is empty; add text or remove it.")
    if "\x00" in text:
        raise LoadError("the file is binary, not text; remove it or convert it to UTF-8 text.")
    warning = f"the file is not UTF-8 and was read as {guess}, a guess; save it as UTF-8 if characters look wrong."
    return text, (warning,) if guess else ()


def _decode(data: bytes) -> tuple[str, str]:
    """Return the text and the encoding that was guessed ("" for UTF-8, which needs no guess)."""
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        return _guess(data)


def _guess(data: bytes) -> tuple[str, str]:
    """Try Windows-1252 first: charset-normalizer is good at other scripts and poor at short Western text."""
    from charset_normalizer import from_bytes

    if _is_western(data):
        return data.decode("cp1252"), "cp1252"
    wide = data.startswith(_UNICODE_MARKS) or b"\x00" in data  # without these, two-byte characters are a false guess
    best = from_bytes(data, cp_exclusion=_MAINFRAME if wide else _MAINFRAME + _WIDE).best()
    if best is None or best.chaos > _MAX_MESS:
        raise LoadError("the file is binary or in an unknown encoding; remove it or save it as UTF-8 text.")
    return str(best), best.encoding


def _is_western(data: bytes) -> bool:
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return False
    marked = [letter for letter in text if not letter.isascii()]
    return _WESTERN.issuperset(marked) and len(marked) <= _MAX_WESTERN_SHARE * len(text) and "\x00" not in text
