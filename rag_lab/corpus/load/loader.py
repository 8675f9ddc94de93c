"""What a loader is, a function from one file to documents, and those of plain text, Markdown and documents of Python.

What a loader could not use it says in sentences. Text that is UTF-8 needs no guess; a guessed encoding is a warning.

Documents that come from Python are written below the home folder, a file a source (the source on the first line, then
a document a line), and read as every other file is, so that an index knows no other way in.
"""

import codecs
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_lab._kit.wording import some_of
from rag_lab.corpus.spans import body_start, headings
from rag_lab.errors import RagLabError
from rag_lab.records import Document

MAX_FILE_BYTES = 512 * 2**20  # of any file; what is larger is no document
MAX_FILE_CHARS = 10_000_000  # of the text of one file: some 5,000 pages
SUFFIX = ".documents"


class LoadError(RagLabError):
    """Why a file cannot be used and what to do, without the path; `lasting` where another attempt fails, too."""

    def __init__(self, message: str, lasting: bool = True) -> None:
        super().__init__(message)
        self.warnings = (message,)
        self.lasting = lasting


@dataclass(frozen=True, slots=True)
class Loaded:
    """The documents of one file, in page order, and what was left out or guessed while reading it."""

    documents: tuple[Document, ...]
    warnings: tuple[str, ...] = ()
    lasting: bool = True  # False where another attempt may read more, so that the result must not be remembered


def loaded_json(found: Loaded) -> dict[str, Any]:
    """Return what was read, as JSON; whose it is stands elsewhere, as do `lasting` and the source."""
    documents = [[item.page, item.text, item.title, item.section] for item in found.documents]
    return {"documents": documents, "warnings": found.warnings}


def loaded_from(data: Mapping[str, Any], source: str = "") -> Loaded:
    """Return what `loaded_json` made JSON of."""
    rows = data["documents"]
    documents = (Document(source, page, text, title, section=section) for page, text, title, section in rows)
    return Loaded(tuple(documents), tuple(data["warnings"]))


Loader = Callable[[Path, str], Loaded]  # (file, source) -> documents; raises LoadError


@contextmanager
def parsing(kind: str) -> Iterator[None]:
    """Turn whatever a parser of untrusted files raises into a `LoadError`; `kind` is what the file should be."""
    try:
        yield
    except (RagLabError, OSError, MemoryError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise LoadError(f"the {kind} is damaged ({type(error).__name__}: {reason}); replace or remove it.") from error


def write_documents(path: Path, documents: Sequence[Document]) -> None:
    """Write the documents of one source, in page order."""
    lines = [documents[0].source, *([item.page, item.text, item.title] for item in documents)]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8", newline="\n")


def source_in(path: Path) -> str:
    """Return the source that the file at `path` holds; '' where it tells none."""
    try:
        with path.open(encoding="utf-8") as file:
            source = json.loads(file.readline())
    except (OSError, ValueError):
        return ""
    return source if isinstance(source, str) else ""


def load_documents(path: Path, source: str) -> Loaded:
    """Read what `write_documents` wrote."""
    documents = []
    for line in path.read_text(encoding="utf-8").split("\n")[1:-1]:
        match json.loads(line):
            case [int() | None as page, str(text), str(title)]:
                documents.append(Document(source, page, text, title))
            case _:
                raise LoadError("the file holds no documents that were given in Python; remove it.")
    if not documents:
        raise LoadError("the file is empty; remove it.")
    return Loaded(tuple(documents))


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
_MAX_TEXT_BYTES = 4 * MAX_FILE_CHARS  # a character takes at most four


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
    if size > _MAX_TEXT_BYTES:
        raise LoadError(f"the file has {size / 2**20:.0f} MiB of text, more than is read; split it into smaller files.")
    return path.read_bytes()


def first_line(text: str) -> str:
    """Return the first line that is not blank, stripped and cut to a title's length ("" where there is none)."""
    stripped = text.strip()
    return stripped[: 2 * _TITLE_CHARS].splitlines()[0].strip()[:_TITLE_CHARS] if stripped else ""
