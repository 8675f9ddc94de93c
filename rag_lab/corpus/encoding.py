"""The encoding of a text file: UTF-8 needs no guess, everything else is one and is said."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence

from rag_lab.corpus.base import LoadError

_UNICODE_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WIDE = ["utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le", "utf_7"]
_MAINFRAME = ["cp037", "cp273", "cp424", "cp500", "cp875", "cp1026", "cp1140"]
_WESTERN = frozenset(
    "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜßàáâãäåæçèéêëìíîïñòóôõöøùúûüÿŒœŠšŽžŸ°±²³µ·×÷½¼¾€£§©®™¡¿«»‘’‚“”„–—…•\xa0\xad"
)
_MAX_WESTERN_SHARE = 0.3  # Latin text has few letters with marks; a text full of them is another script
_MAX_MESS = 0.1  # charset-normalizer's share of implausible characters above which a guess is not worth having
_SAMPLE_BYTES = 2**20  # it tries some forty encodings on all that it is given
_LINES_NAMED = 5
_REPLACEMENT = "\ufffd"
_MAX_BROKEN_SHARE = 0.2  # of the whole characters; no text of another encoding has as many that are UTF-8 by chance


def decode(data: bytes) -> tuple[str, str]:
    """Return the text, with `\\n` as its only line end, and a warning where its encoding was guessed ("" else).

    Raises:
        LoadError: if the data are empty or not text.
    """
    text, warning = _decode(data)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise LoadError("the file is empty; add text or remove it.")
    if "\x00" in text:
        raise LoadError("the file is binary, not text; remove it or convert it to UTF-8 text.")
    return text, warning


def _decode(data: bytes) -> tuple[str, str]:
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        return _mixed(data) or _guess(data)


def _mixed(data: bytes) -> tuple[str, str] | None:
    """Read line by line where most is UTF-8, or some lines are and the others Windows-1252; None for any other file."""
    if b"\x00" in data or data.startswith(_UNICODE_MARKS):
        return None
    lines = data.split(b"\n")
    foreign = [number for number, line in enumerate(lines) if not is_utf8(line)]
    western = {number for number in foreign if _is_western(lines[number]) and not _n_characters(lines[number])[0]}
    damaged = [number for number in foreign if number not in western]
    n_whole = _n_characters(data)[0]
    n_broken = sum(_n_characters(lines[number])[1] for number in damaged)
    if not n_whole or n_broken > _MAX_BROKEN_SHARE * n_whole:
        return None
    decoded = (line.decode("cp1252" if n in western else "utf-8", "replace") for n, line in enumerate(lines))
    return "\n".join(decoded).removeprefix("\ufeff"), " ".join(_line_warnings(sorted(western), damaged))


def _n_characters(data: bytes) -> tuple[int, int]:
    """Return how many characters of more than one byte are whole in UTF-8, and how many are not."""
    text = data.decode("utf-8", "replace")
    n_broken = text.count(_REPLACEMENT)
    return len(text) - len(text.encode("ascii", "ignore")) - n_broken, n_broken


def _line_warnings(western: Sequence[int], damaged: Sequence[int]) -> Iterator[str]:
    if western:
        verb = "is not UTF-8 and was" if len(western) == 1 else "are not UTF-8 and were"
        yield f"{_named(western)} {verb} read as cp1252; save it as UTF-8."
    if damaged:
        verb = "holds" if len(damaged) == 1 else "hold"
        yield f"{_named(damaged)} {verb} bytes that are not UTF-8, each read as {_REPLACEMENT}; correct them."


def _named(lines: Sequence[int]) -> str:
    named = ("line " if len(lines) == 1 else "lines ") + ", ".join(str(number + 1) for number in lines[:_LINES_NAMED])
    return named + (f" and {len(lines) - _LINES_NAMED} more" if len(lines) > _LINES_NAMED else "")


def _guess(data: bytes) -> tuple[str, str]:
    """Try Windows-1252 first: charset-normalizer is good at other scripts and poor at short Western text."""
    from charset_normalizer import from_bytes

    if _is_western(data):
        return data.decode("cp1252"), _warning("cp1252")
    wide = data.startswith(_UNICODE_MARKS) or b"\x00" in data  # without these, two-byte characters are a false guess
    sample = _sample(data)
    best = from_bytes(sample, cp_exclusion=_MAINFRAME if wide else _MAINFRAME + _WIDE).best()
    unknown = LoadError("the file is binary or in an unknown encoding; remove it or save it as UTF-8 text.")
    if best is None or best.chaos > _MAX_MESS:
        raise unknown
    try:
        text = str(best) if len(sample) == len(data) else data.decode(best.encoding)
    except UnicodeDecodeError:
        raise unknown from None
    return text, _warning(best.encoding)


def _sample(data: bytes) -> bytes:
    """Return the beginning of long data, cut at a line's end where there is one."""
    if len(data) <= _SAMPLE_BYTES:
        return data
    end = data.rfind(b"\n", 0, _SAMPLE_BYTES) + 1
    return data[: end - end % 4 or _SAMPLE_BYTES]  # whole characters also where each has two or four bytes


def _warning(encoding: str) -> str:
    return f"the file is not UTF-8 and was read as {encoding}, a guess; save it as UTF-8 if characters look wrong."


def is_utf8(data: bytes) -> bool:
    """Return whether the data are UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _is_western(data: bytes) -> bool:
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return False
    marked = [letter for letter in text if not letter.isascii()]
    return _WESTERN.issuperset(marked) and len(marked) <= _MAX_WESTERN_SHARE * len(text) and "\x00" not in text
