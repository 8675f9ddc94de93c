"""The encoding of a text file: UTF-8 needs no guess, everything else is one and is said."""

from __future__ import annotations

import codecs

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
    """Read line by line where some lines are UTF-8 and the others Windows-1252; None for any other file."""
    if b"\x00" in data or data.startswith(_UNICODE_MARKS):
        return None
    lines = data.split(b"\n")
    marked = [number for number, line in enumerate(lines) if not line.isascii()]
    foreign = [number for number in marked if not _is_utf8(lines[number])]
    if len(foreign) == len(marked) or not all(_is_western(lines[number]) for number in foreign):
        return None
    wrong = set(foreign)
    text = "\n".join(line.decode("cp1252" if number in wrong else "utf-8") for number, line in enumerate(lines))
    named = ("line " if len(foreign) == 1 else "lines ") + ", ".join(str(n + 1) for n in foreign[:_LINES_NAMED])
    more = f" and {len(foreign) - _LINES_NAMED} more" if len(foreign) > _LINES_NAMED else ""
    verb = "is not UTF-8 and was" if len(foreign) == 1 else "are not UTF-8 and were"
    return text.removeprefix("\ufeff"), f"{named}{more} {verb} read as cp1252; save it as UTF-8."


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


def _is_utf8(data: bytes) -> bool:
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
