"""How a corpus is read: the loader of each suffix, built in or custom, and whatever can change its result."""

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
from rag_lab.corpus.files.reader_process import LOADERS, SECONDS, load_bounded, worker
from rag_lab.corpus.load.loader import Loaded, Loader, LoadError
from rag_lab.corpus.load.pdf_vision import VisionPdf
from rag_lab.errors import ConfigError
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatModel
from rag_lab.records import Document

_VERSION = 8  # raised when a loader or the normalization changes its results
_LIBRARIES = ("charset-normalizer", "webencodings", "lxml", "mammoth", "python-calamine")
_PDF = {"text": "pdf_text", "tables": "pdf_tables", "pdfium": "pdfium", "vision": "pdf_text"}


def file_reader_of(reader: Any) -> tuple[Loader, Mapping[str, Any]]:
    """Return the loader that a name, or an object, stands for, and whatever can change what it reads."""
    if isinstance(reader, str) and reader in FILE_READERS.built_in:
        return FILE_READERS.find(reader).value, {"name": reader}
    if isinstance(reader, str) and reader.startswith(FACTORY):
        factory = FILE_READERS.load(reader.partition("?")[0])
        module = Module(reader, _loading(factory, parse_parameters(reader)), source_digest(factory))
    elif isinstance(reader, str):
        module = FILE_READERS.find(reader)
    elif isinstance(reader, type) and hasattr(reader, "lazy_load"):
        module = Module(reader.__name__, _loading(reader, {}), source_digest(reader))
    else:
        module = from_object(reader, FILE_READERS)
    custom = CustomFileReader(module)
    return custom, custom.identity()


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
        if isinstance(returned, str):
            return Loaded((Document(source, None, returned),))
        if isinstance(returned, Loaded):
            return self._checked(returned, source)
        if not isinstance(returned, Sequence) or isinstance(returned, bytes):
            raise CustomCodeError(
                f"the {self._code.what} returned {type(returned).__name__} where text, or texts, are due"
            )
        texts = [getattr(item, "page_content", item) for item in returned]
        about = [getattr(item, "metadata", None) or {} for item in returned]
        # LangChain counts pages from 0; texts without numbers are pages in order, if several.
        numbers = [n + 1 for each in about if isinstance(n := each.get("page"), int) and n >= 0]
        in_order = [None] if len(about) == 1 else range(1, len(about) + 1)
        pages = numbers if len(set(numbers)) == len(about) else in_order
        documents = [
            Document(source, page, cast(str, text), str(each.get("title") or ""))
            for page, text, each in zip(pages, texts, about, strict=True)
        ]
        return self._checked(Loaded(tuple(documents)), source)

    def _checked(self, loaded: Loaded, source: str) -> Loaded:
        for document in loaded.documents:
            if not isinstance(document, Document) or not isinstance(document.text, str):
                wrong = document.text if isinstance(document, Document) else document
                raise CustomCodeError(f"the {self._code.what} returned {type(wrong).__name__} where text is due")
        if len({document.page for document in loaded.documents}) < len(loaded.documents):
            raise CustomCodeError(f"the {self._code.what} returned two documents of one page")
        filled = (document for document in loaded.documents if document.text.strip())
        named = (replace(document, source=source, title=str(document.title)) for document in filled)
        return replace(loaded, documents=tuple(named))


class Reading:
    """The loaders of one configuration; `vision` is the model that reads PDF files where it says `vision`."""

    def __init__(
        self,
        config: CorpusConfig,
        vision: ChatModel | None,
        home: Path,
        overrides: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        library, other = ("pypdfium2", "text") if config.pdf == "pdfium" else ("pymupdf", "pdfium")
        try:
            self._pdf: dict[str, Any] = {"name": config.pdf, "library": f"{library} {version(library)}"}
        except PackageNotFoundError:
            raise ConfigError(
                f"corpus.pdf: {config.pdf} needs {library}, which is not installed; set corpus.pdf to {other} or "
                f"install {library}."
            ) from None
        loader: Loader = FILE_READERS.find(_PDF[config.pdf]).value
        if vision is not None:
            call = partial(worker.call, seconds=config.file_seconds)
            memory = Memory(home / "vision.sqlite")
            loader = VisionPdf(vision, config.vision_dpi, config.vision_min_score, memory, call)
            self._pdf.update(loader.identity())
        named = {suffix: file_reader_of(reader) for suffix, reader in {**config.readers, **overrides}.items()}
        self._custom = {suffix: dict(identity) for suffix, (_, identity) in named.items()}
        readers = {suffix: reader for suffix, (reader, _) in named.items()}
        self.loaders: Mapping[str, Loader] = {**LOADERS, ".pdf": loader, **readers}
        self._seconds = config.file_seconds

    def load(self, path: Path, source: str) -> Loaded:
        """Read one file; see `load_bounded`."""
        return load_bounded(path, source, self.loaders, self._seconds)

    def identity(self) -> Mapping[str, Any]:
        """Return whatever can change a document beside its file."""
        found = {"version": _VERSION, "pdf": self._pdf, "own": self._custom, "libraries": _libraries()}
        return found if self._seconds == SECONDS else {**found, "seconds": self._seconds}

    def identity_of(self, suffix: str) -> Mapping[str, Any]:
        """Return whatever can change the documents of a file with this suffix."""
        pdf = self._pdf if suffix == ".pdf" else None
        return {**self.identity(), "pdf": pdf, "own": self._custom.get(suffix), "suffix": suffix}


@cache
def _libraries() -> dict[str, str]:
    return {name: version(name) for name in _LIBRARIES}  # looked up on disk, and asked for each file
