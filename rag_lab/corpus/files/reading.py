"""How a corpus is read: which loader takes which suffix under a configuration, and what can change its result."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.files.bounded import SECONDS, call_bounded, load_bounded
from rag_lab.corpus.files.file_readers import FILE_READERS
from rag_lab.corpus.files.loaders import LOADERS
from rag_lab.corpus.files.own_file_reader import file_reader_of
from rag_lab.corpus.load.loader import Loaded, Loader
from rag_lab.corpus.load.pdf.vision import VisionPdf
from rag_lab.errors import ConfigError
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatModel

_VERSION = 7  # raised when a loader or the normalization changes its results
_LIBRARIES = ("charset-normalizer", "webencodings", "lxml", "mammoth", "python-calamine")

_PDF = {"text": "pdf_text", "tables": "pdf_tables", "pdfium": "pdfium", "vision": "pdf_text"}


class Reading:
    """The loaders of one configuration.

    Args:
        config: says how PDF files are read, and by what other files are.
        vision: the model that reads them where it says `vision`, None otherwise.
        home: where the model's replies are remembered.
        given: objects in place of, or beside, the file readers that `config` names, by suffix.

    Raises:
        ConfigError: if the library that reads PDF files so is not installed, or there is no such file reader.
    """

    def __init__(
        self,
        config: CorpusConfig,
        vision: ChatModel | None,
        home: Path,
        given: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._pdf: dict[str, Any] = {"name": config.pdf, "library": _library(config.pdf)}
        loader: Loader = FILE_READERS.find(_PDF[config.pdf]).made
        if vision is not None:
            call = partial(call_bounded, seconds=config.file_seconds)
            memory = Memory(home / "vision.sqlite")
            loader = VisionPdf(vision, config.vision_dpi, config.vision_min_score, memory, call)
            self._pdf.update(loader.identity())
        own = {suffix: file_reader_of(reader) for suffix, reader in {**config.readers, **given}.items()}
        self._own = {suffix: dict(identity) for suffix, (_, identity) in own.items()}
        readers = {suffix: reader for suffix, (reader, _) in own.items()}
        self.loaders: Mapping[str, Loader] = {**LOADERS, ".pdf": loader, **readers}
        self._seconds = config.file_seconds

    def load(self, path: Path, source: str) -> Loaded:
        """Read one file; see `load_bounded`."""
        return load_bounded(path, source, self.loaders, self._seconds)

    def identity(self) -> Mapping[str, Any]:
        """Return whatever can change a document beside its file."""
        found = {"version": _VERSION, "pdf": self._pdf, "own": self._own, "libraries": _libraries()}
        return found if self._seconds == SECONDS else {**found, "seconds": self._seconds}

    def identity_of(self, suffix: str) -> Mapping[str, Any]:
        """Return whatever can change the documents of a file with this suffix."""
        pdf = self._pdf if suffix == ".pdf" else None
        return {**self.identity(), "pdf": pdf, "own": self._own.get(suffix), "suffix": suffix}


@cache
def _libraries() -> dict[str, str]:
    return {name: version(name) for name in _LIBRARIES}  # looked up on disk, and asked for each file


def _library(pdf: str) -> str:
    """Return name and version of the library behind a value of `corpus.pdf`."""
    name = "pypdfium2" if pdf == "pdfium" else "pymupdf"
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        other = "text" if pdf == "pdfium" else "pdfium"
        raise ConfigError(
            f"corpus.pdf: {pdf} needs {name}, which is not installed; set corpus.pdf to {other} or install {name}."
        ) from None
