"""Plain text and Markdown files: one document without pages."""

from __future__ import annotations

from pathlib import Path

from rag_lab.corpus.headings import body_start, headings
from rag_lab.corpus.load.encoding import decode
from rag_lab.corpus.load.loader import MAX_FILE_CHARS, Loaded, LoadError
from rag_lab.records import Document

_TITLE_CHARS = 200
_MAX_BYTES = 4 * MAX_FILE_CHARS  # a character takes at most four


def load_text(path: Path, source: str) -> Loaded:
    """Read a plain text file; its title is its first line that is not blank.

    Raises:
        LoadError: if the file is empty, too long, or not text.
    """
    text, warnings = read_text(path)
    return Loaded((Document(source, None, text, first_line(text)),), warnings)


def load_markdown(path: Path, source: str) -> Loaded:
    """Read a Markdown file as it stands; its title is its first heading, else its first line behind front matter.

    Raises:
        LoadError: if the file is empty, too long, or not text.
    """
    text, warnings = read_text(path)
    found = headings(text)
    title = found[0].title if found else first_line(text[body_start(text) :])
    return Loaded((Document(source, None, text, title),), warnings)


def read_text(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return a text file with line ends as `\\n`, and a warning where its encoding had to be guessed.

    Raises:
        LoadError: if the file is empty, too long, or not text.
    """
    text, warning = decode(read_bytes(path))
    return text, (warning,) if warning else ()


def read_bytes(path: Path) -> bytes:
    """Return the content of a text file of any encoding.

    Raises:
        LoadError: if it is too long to be prose.
    """
    size = path.stat().st_size
    if size > _MAX_BYTES:
        raise LoadError(f"the file has {size / 2**20:.0f} MiB of text, more than is read; split it into smaller files.")
    return path.read_bytes()


def first_line(text: str) -> str:
    """Return the first line that is not blank, stripped and cut to a title's length ("" where there is none)."""
    stripped = text.strip()
    return stripped[: 2 * _TITLE_CHARS].splitlines()[0].strip()[:_TITLE_CHARS] if stripped else ""
