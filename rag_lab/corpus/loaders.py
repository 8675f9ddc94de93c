"""Which loader reads which suffix: a new file type is one file in this room and one line here."""

from __future__ import annotations

from pathlib import Path

from rag_lab.corpus.base import Loaded, Loader, LoadError
from rag_lab.corpus.pdf import load_pdf
from rag_lab.corpus.text import load_markdown, load_text

LOADERS: dict[str, Loader] = {
    ".pdf": load_pdf,
    ".txt": load_text,
    ".md": load_markdown,
    ".markdown": load_markdown,
}


def load(path: Path, source: str) -> Loaded:
    """Read one file by the loader of its suffix, which is matched without regard to case.

    Raises:
        LoadError: if the file cannot be used.
        KeyError: if no loader reads the suffix.
    """
    loader = LOADERS[path.suffix.lower()]
    try:
        return loader(path, source)
    except OSError as error:
        raise LoadError(f"the file cannot be read: {error.strerror}; check its permissions.") from None
