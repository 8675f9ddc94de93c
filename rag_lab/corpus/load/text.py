"""Plain text and Markdown files: one document without pages. UTF-8 needs no guess; a guessed encoding is a warning."""

import codecs
from pathlib import Path

from rag_lab._kit.wording import some_of
from rag_lab.corpus.headings import body_start, headings
from rag_lab.corpus.load.loader import MAX_FILE_CHARS, Loaded, LoadError
from rag_lab.records import Document

WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WIDE = ["utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le", "utf_7"]
_MAINFRAME = ["cp037", "cp273", "cp424", "cp500", "cp875", "cp1026", "cp1140"]
_WESTERN = frozenset(
    "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜßàáâãäåæçèéêëìíîïñòóôõöøùúûüÿŒœŠšŽžŸ°±²³µ·×÷½¼¾€£§©®™¡¿«»‘’‚“”„–—…•\xa0\xad"
)
_MAX_WESTERN_SHARE = 0.3  # Latin text has few letters with marks; a text full of them is another script
_MAX_MESS = 0.1  # charset-normalizer's share of implausible characters above which a guess is not worth having
_LINES_NAMED = 5
_MAX_BROKEN_SHARE = 0.2  # of the whole characters; no text of another encoding has as many that are UTF-8 by chance
_TITLE_CHARS = 200
_MAX_BYTES = 4 * MAX_FILE_CHARS  # a character takes at most four


def decode(data: bytes) -> tuple[str, str]:
    """Return the text, with `\\n` as its only line end, and a warning where its encoding was guessed ("" else)."""
    try:
        text, warning = data.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        text, warning = _mixed(data) or _guess(data)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise LoadError("the file is empty; add text or remove it.")
    if "\x00" in text:
        raise LoadError("the file is binary, not text; remove it or convert it to UTF-8 text.")
    return text, warning


def _mixed(data: bytes) -> tuple[str, str] | None:
    """Read line by line where most is UTF-8, or some lines are and the others Windows-1252; None for any other file."""
    if b"\x00" in data or data.startswith(WIDE_MARKS):
        return None
    texts, foreign = [], []
    n_whole = n_broken = 0  # characters of more than one byte
    for number, line in enumerate(data.split(b"\n"), 1):
        text = line.decode("utf-8", "replace")
        broken = 0 if is_utf8(line) else text.count("\ufffd")
        whole = len(text) - len(text.encode("ascii", "ignore")) - broken
        if broken:
            foreign.append(str(number))
            if not whole and _is_western(line):
                text, broken = line.decode("cp1252"), 0
        texts.append(text)
        n_whole, n_broken = n_whole + whole, n_broken + broken
    if not n_whole or n_broken > _MAX_BROKEN_SHARE * n_whole:
        return None
    where = f"{'line' if len(foreign) == 1 else 'lines'} {some_of(foreign, _LINES_NAMED)}"
    warning = f"bytes that are not UTF-8 were read as cp1252 or \ufffd in {where}; save the file as UTF-8."
    return "\n".join(texts).removeprefix("\ufeff"), warning


def _guess(data: bytes) -> tuple[str, str]:
    """Try Windows-1252 first: charset-normalizer is good at other scripts and poor at short Western text."""
    from charset_normalizer import from_bytes

    unknown = LoadError("the file is binary or in an unknown encoding; remove it or save it as UTF-8 text.")
    encoding = "cp1252"
    if not _is_western(data):
        wide = data.startswith(WIDE_MARKS) or b"\x00" in data  # without these, two-byte characters are a false guess
        best = from_bytes(data, cp_exclusion=_MAINFRAME if wide else _MAINFRAME + _WIDE).best()
        if best is None or best.chaos > _MAX_MESS:
            raise unknown
        encoding = best.encoding
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise unknown from None
    return (
        text,
        f"the file is not UTF-8 and was read as {encoding}, a guess; save it as UTF-8 if characters look wrong.",
    )


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


def load_text(path: Path, source: str) -> Loaded:
    """Read a plain text file; its title is its first line that is not blank."""
    text, warnings = read_text(path)
    return Loaded((Document(source, None, text, first_line(text)),), warnings)


def load_markdown(path: Path, source: str) -> Loaded:
    """Read a Markdown file as it stands; its title is its first heading, else its first line behind front matter."""
    text, warnings = read_text(path)
    found = headings(text)
    title = found[0].title if found else first_line(text[body_start(text) :])
    return Loaded((Document(source, None, text, title),), warnings)


def read_text(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return a text file with line ends as `\\n`, and a warning where its encoding had to be guessed."""
    text, warning = decode(read_bytes(path))
    return text, (warning,) if warning else ()


def read_bytes(path: Path) -> bytes:
    """Return the content of a text file of any encoding."""
    size = path.stat().st_size
    if size > _MAX_BYTES:
        raise LoadError(f"the file has {size / 2**20:.0f} MiB of text, more than is read; split it into smaller files.")
    return path.read_bytes()


def first_line(text: str) -> str:
    """Return the first line that is not blank, stripped and cut to a title's length ("" where there is none)."""
    stripped = text.strip()
    return stripped[: 2 * _TITLE_CHARS].splitlines()[0].strip()[:_TITLE_CHARS] if stripped else ""
