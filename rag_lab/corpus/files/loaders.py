"""Which loader reads which suffix: a new file type is one file in this room and one line in `file_readers`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from rag_lab.corpus.files.file_readers import BY_SUFFIX, FILE_READERS
from rag_lab.corpus.load.given import SUFFIX, load_given
from rag_lab.corpus.load.loader import MAX_FILE_BYTES, MAX_FILE_CHARS, Loaded, Loader, LoadError, parsing
from rag_lab.corpus.normalize import normalize_documents

_MAX_LINE_CHARS = 1_000_000


_PDF = "pdf_text" if find_spec("pymupdf") else "pdfium"  # where no configuration says how a PDF is read

LOADERS: dict[str, Loader] = {
    ".pdf": FILE_READERS.find(_PDF).made,
    **{suffix: FILE_READERS.find(name).made for suffix, name in BY_SUFFIX.items()},
    SUFFIX: load_given,
}
ALLOWED = ", ".join(suffix for suffix in LOADERS if suffix != SUFFIX)  # what people put into a folder


def load(path: Path, source: str, loaders: Mapping[str, Loader] = LOADERS) -> Loaded:
    """Read one file by the loader of its suffix, which is matched without regard to case, and normalize its text.

    The title is "" where the file has none of its own: it may have been read under another name.

    Raises:
        LoadError: if the file cannot be used.
        KeyError: if no loader reads the suffix.
    """
    loader = loaders[path.suffix.lower()]
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise LoadError(f"the file is larger than {MAX_FILE_BYTES / 2**20:.0f} MiB; split or remove it.")
        with parsing("file"):
            loaded = loader(path, source)
    except OSError as error:
        raise LoadError(f"the file cannot be read: {error.strerror}; check its permissions.", lasting=False) from None
    _check_length(loaded)
    documents = normalize_documents(loaded.documents)
    if not documents:
        raise LoadError("the file is empty; add text or remove it.")
    return replace(loaded, documents=documents)


def _check_length(loaded: Loaded) -> None:
    n_chars = sum(len(document.text) for document in loaded.documents)
    if n_chars > MAX_FILE_CHARS:
        raise LoadError(f"the file holds {n_chars:,} characters, more than {MAX_FILE_CHARS:,} are not read; split it.")
    longest = max(len(line) for document in loaded.documents for line in document.text.split("\n"))
    if longest > _MAX_LINE_CHARS:
        raise LoadError(f"the file has a line of {longest:,} characters, which is no prose; break it into lines.")
