"""How a corpus is read: the loader of each suffix, built in or custom, and whatever can change its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial, wraps
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from rag_lab._kit.custom_code import CustomCode, CustomCodeError
from rag_lab._kit.digest import source_digest
from rag_lab._kit.registry import FACTORY, Module, from_object, parse_parameters
from rag_lab.corpus.config import FILE_READERS, CorpusConfig
from rag_lab.corpus.files.reader_process import LOADERS, SECONDS, call_bounded, load_bounded
from rag_lab.corpus.load.loader import Loaded, Loader, LoadError
from rag_lab.corpus.load.pdf_vision import VisionPdf
from rag_lab.errors import ConfigError
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatModel
from rag_lab.records import Document


def file_reader_of(given: Any) -> tuple[Loader, Mapping[str, Any]]:
    """Return the loader that a name, or an object, stands for, and whatever can change what it reads."""
    if given in FILE_READERS.built_in if isinstance(given, str) else False:
        return FILE_READERS.find(given).value, {"name": given}
    reader = CustomFileReader(_module(given))
    return reader, reader.identity()


def _module(given: Any) -> Module:
    if isinstance(given, str) and given.startswith(FACTORY):
        factory = FILE_READERS.load(given.partition("?")[0])
        return Module(given, _loading(factory, parse_parameters(given)), source_digest(factory))
    if isinstance(given, str):
        return FILE_READERS.find(given)
    if isinstance(given, type) and hasattr(given, "lazy_load"):
        return Module(given.__name__, _loading(given, {}), source_digest(given))
    return from_object(given, FILE_READERS)


def _loading(factory: Any, parameters: Mapping[str, Any]) -> Callable[[Path], Any]:
    @wraps(factory, updated=())
    def load(path: Path) -> Any:
        return factory(str(path), **parameters).load()

    return load


class CustomFileReader:
    """A custom reader `(path) -> text, texts of pages, LangChain documents, or Loaded`, as a loader."""

    def __init__(self, module: Module) -> None:
        self._code = CustomCode(module, f"file reader {module.name!r}")

    def identity(self) -> Mapping[str, Any]:
        """The module's source, and what it is set to."""
        return self._code.identity()

    def __call__(self, path: Path, source: str) -> Loaded:
        """Read a file."""
        try:
            loaded: Loaded = self._code.call(path, accept=lambda returned: self._accepted(returned, source))
        except CustomCodeError as error:
            raise LoadError(f"{error}.", lasting=False) from None
        return loaded

    def _accepted(self, returned: Any, source: str) -> Loaded:
        if isinstance(returned, Loaded):
            return replace(returned, documents=self._checked(returned.documents, source))
        if isinstance(returned, str):
            return Loaded((Document(source, None, returned),))
        if not isinstance(returned, Sequence) or isinstance(returned, bytes):
            raise CustomCodeError(
                f"the {self._code.what} returned {type(returned).__name__} where text, or texts, are due"
            )
        texts = [getattr(item, "page_content", item) for item in returned]
        about = [getattr(item, "metadata", None) or {} for item in returned]
        documents = [
            Document(source, page, cast(str, text), str(each.get("title") or ""))
            for page, text, each in zip(_pages(about), texts, about, strict=True)
        ]
        return Loaded(self._checked(documents, source))

    def _checked(self, documents: Sequence[Document], source: str) -> tuple[Document, ...]:
        for document in documents:
            if not isinstance(document, Document) or not isinstance(document.text, str):
                wrong = document.text if isinstance(document, Document) else document
                raise CustomCodeError(f"the {self._code.what} returned {type(wrong).__name__} where text is due")
        if len({document.page for document in documents}) < len(documents):
            raise CustomCodeError(f"the {self._code.what} returned two documents of one page")
        return tuple(
            replace(document, source=source, title=str(document.title))
            for document in documents
            if document.text.strip()
        )


def _pages(about: Sequence[Mapping[str, Any]]) -> Sequence[int | None]:
    """Return the number of each page: LangChain counts from 0; texts without numbers are pages in order, if several."""
    given = [each.get("page") for each in about]
    numbers = [number + 1 for number in given if isinstance(number, int) and number >= 0]
    if len(set(numbers)) == len(about):
        return numbers
    return [None] if len(about) == 1 else range(1, len(about) + 1)


_VERSION = 8  # raised when a loader or the normalization changes its results
_LIBRARIES = ("charset-normalizer", "webencodings", "lxml", "mammoth", "python-calamine")

_PDF = {"text": "pdf_text", "tables": "pdf_tables", "pdfium": "pdfium", "vision": "pdf_text"}


class Reading:
    """The loaders of one configuration; `vision` is the model that reads PDF files where it says `vision`."""

    def __init__(
        self,
        config: CorpusConfig,
        vision: ChatModel | None,
        home: Path,
        given: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._pdf: dict[str, Any] = {"name": config.pdf, "library": _library(config.pdf)}
        loader: Loader = FILE_READERS.find(_PDF[config.pdf]).value
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
