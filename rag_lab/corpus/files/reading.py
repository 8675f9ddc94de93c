"""How a corpus is read: which loader takes which suffix under a configuration, and what can change its result."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.files.loaders import LOADERS
from rag_lab.corpus.load.loader import Loader
from rag_lab.corpus.load.pdf.pdfium import load_pdfium
from rag_lab.corpus.load.pdf.tables import load_pdf_tables
from rag_lab.corpus.load.pdf.text import load_pdf
from rag_lab.corpus.load.pdf.vision import VisionPdf
from rag_lab.errors import ConfigError
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatModel

_VERSION = 6  # raised when a loader or the normalization changes its results
_LIBRARIES = ("charset-normalizer", "webencodings", "lxml", "mammoth", "python-calamine")

_PDF: Mapping[str, Loader] = {"tables": load_pdf_tables, "pdfium": load_pdfium}


class Reading:
    """The loaders of one configuration.

    Args:
        config: says how PDF files are read.
        vision: the model that reads them where it says `vision`, None otherwise.
        home: where the model's replies are remembered.

    Raises:
        ConfigError: if the library that reads PDF files so is not installed.
    """

    def __init__(self, config: CorpusConfig, vision: ChatModel | None, home: Path) -> None:
        self._pdf: dict[str, Any] = {"name": config.pdf, "library": _library(config.pdf)}
        loader = _PDF.get(config.pdf, load_pdf)
        if vision is not None:
            loader = VisionPdf(vision, config.vision_dpi, config.vision_min_score, Memory(home / "vision.sqlite"))
            self._pdf.update(loader.identity())
        self.loaders: Mapping[str, Loader] = {**LOADERS, ".pdf": loader}

    def identity(self) -> Mapping[str, Any]:
        """Return whatever can change a document beside its file."""
        return {"version": _VERSION, "pdf": self._pdf, "libraries": {name: version(name) for name in _LIBRARIES}}

    def identity_of(self, suffix: str) -> Mapping[str, Any]:
        """Return whatever can change the documents of a file with this suffix."""
        own = {"pdf": self._pdf} if suffix == ".pdf" else {"pdf": None}
        return {**self.identity(), **own, "suffix": suffix}


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
