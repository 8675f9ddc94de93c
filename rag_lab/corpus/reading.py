"""How a corpus is read: which loader takes which suffix under a configuration, and what can change its result."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rag_lab.config import CorpusConfig
from rag_lab.corpus.base import Loader
from rag_lab.corpus.loaders import LOADERS
from rag_lab.corpus.pdf_tables import load_pdf_tables
from rag_lab.corpus.vision import VisionPdf
from rag_lab.memory import Memory
from rag_lab.models.base import ChatModel

_VERSION = 4  # raised when a loader or the normalization changes its results
_LIBRARIES = ("pymupdf", "charset-normalizer", "webencodings", "lxml", "python-calamine")


class Reading:
    """The loaders of one configuration.

    Args:
        config: says how PDF files are read.
        vision: the model that reads them where it says `vision`, None otherwise.
        home: where the model's replies are remembered.
    """

    def __init__(self, config: CorpusConfig, vision: ChatModel | None, home: Path) -> None:
        self._pdf: dict[str, Any] = {"name": config.pdf}
        loader: Loader = LOADERS[".pdf"]
        if config.pdf == "tables":
            loader = load_pdf_tables
        elif vision is not None:
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
