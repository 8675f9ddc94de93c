"""How files are read: the loader of each suffix, built in or custom, whatever can change its result, and the worker.

Files are read in a worker process: parsers of untrusted files hang, fill memory and crash, and then end it alone. There
is one worker in a process; it reads file after file, and is replaced once a file has ended it. `python -m
rag_lab.corpus.reading` answers requests on stdin by replies on stdout, each a line of JSON. A request that takes too
long ends the worker by an alarm, also where a parser's C code hears no Python; too much memory ends it, too. A new file
type is one function in `corpus/load` and one line in `corpus/config.py`.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, wraps
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from rag_lab._kit.custom_code import CustomCode, CustomCodeError
from rag_lab._kit.digest import source_digest
from rag_lab._kit.registry import FACTORY, Module, from_object, parse_parameters, version
from rag_lab.corpus.config import BY_SUFFIX, FILE_READERS, CorpusConfig
from rag_lab.corpus.load import loader as loading
from rag_lab.corpus.load.pdf_vision import PAGES, VisionPdf
from rag_lab.corpus.normalize import normalize_documents
from rag_lab.errors import ConfigError, RagLabError
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatModel
from rag_lab.records import Document

_MAX_LINE_CHARS = 1_000_000


_DEFAULT_PDF = "pdf_text" if find_spec("pymupdf") else "pdfium"  # where no configuration says how a PDF is read

LOADERS: dict[str, loading.Loader] = {
    ".pdf": FILE_READERS.find(_DEFAULT_PDF).value,
    **{suffix: FILE_READERS.find(name).value for suffix, name in BY_SUFFIX.items()},
    loading.SUFFIX: loading.load_documents,
}
ALLOWED = ", ".join(suffix for suffix in LOADERS if suffix != loading.SUFFIX)  # what people put into a folder
MAX_BYTES = 2 * 2**30  # of the worker's address space
SECONDS = 120  # in which a file is read, where no configuration says otherwise
_COMMAND = (sys.executable, "-P", "-m", "rag_lab.corpus.reading")
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # each thread takes address space
_GONE = (0, -signal.SIGKILL, -signal.SIGTERM)  # it was idle for long, or somebody ended it: no fault of the file
_OUT_OF_MEMORY = 3  # exit status
_IDLE_S = 60.0


def load(path: Path, source: str, loaders: Mapping[str, loading.Loader] = LOADERS) -> loading.Loaded:
    """Read one file by the loader of its suffix, in any case, and normalize its text; its title may be ""."""
    loader = loaders[path.suffix.lower()]
    try:
        if path.stat().st_size > loading.MAX_FILE_BYTES:
            raise loading.LoadError(
                f"the file is larger than {loading.MAX_FILE_BYTES / 2**20:.0f} MiB; split or remove it."
            )
        with loading.parsing("file"):
            loaded = loader(path, source)
    except OSError as error:
        raise loading.LoadError(
            f"the file cannot be read: {error.strerror}; check its permissions.", lasting=False
        ) from None
    n_chars = sum(len(document.text) for document in loaded.documents)
    if n_chars > loading.MAX_FILE_CHARS:
        raise loading.LoadError(
            f"the file holds {n_chars:,} characters, more than {loading.MAX_FILE_CHARS:,} are not read; split it."
        )
    longest = max(len(line) for document in loaded.documents for line in document.text.split("\n"))
    if longest > _MAX_LINE_CHARS:
        raise loading.LoadError(f"the file has a line of {longest:,} characters, not prose; break it into lines.")
    documents = normalize_documents(loaded.documents)
    if not documents:
        raise loading.LoadError("the file is empty; add text or remove it.")
    return replace(loaded, documents=documents)


def load_bounded(
    path: Path, source: str, loaders: Mapping[str, loading.Loader] = LOADERS, seconds: float = SECONDS
) -> loading.Loaded:
    """Read one file as `load` does, in the worker; by a reader that is not ours in this process."""
    loader = loaders[path.suffix.lower()]
    target = f"{loader.__module__}:{getattr(loader, '__qualname__', '')}"
    name = next((name for name, built in FILE_READERS.built_in.items() if built.target == target), "")
    if not name:
        return load(path, source, loaders)
    return loading.loaded_from(worker.call("load", str(path.absolute()), source, name, seconds=seconds), source)


class _Worker:
    """The process, started when it is first asked, or before. One thread at a time asks it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0  # of the process that started it: a fork must not ask its parent's

    def start(self) -> Any:
        """Return the process, which is started where it does not run; it need not be waited for."""
        with self._lock:
            if self._process is None or self._pid != os.getpid() or self._process.poll() is not None:
                self._pid, pipe = os.getpid(), subprocess.PIPE
                self._process = subprocess.Popen(  # noqa: S603 - ours
                    _COMMAND, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env={**os.environ, **_ONE_THREAD}
                )
            return self._process

    def call(self, name: str, *arguments: Any, seconds: float) -> Any:
        """Return what one of `FUNCTIONS` returns in the process."""
        request = json.dumps({"do": name, "arguments": arguments, "seconds": seconds})
        with self._lock:
            status = 0
            for _ in range(2):
                process = self.start()
                try:
                    process.stdin.write(request.encode() + b"\n")
                    process.stdin.flush()
                    line = process.stdout.readline()
                except BrokenPipeError:  # it has ended
                    line = b""
                except BaseException:  # Ctrl-C: nobody waits for the reply
                    self._end()
                    raise
                if line:
                    reply = json.loads(line)
                    if "error" in reply:
                        raise loading.LoadError(reply["error"], reply["lasting"])
                    return reply["value"]
                if (status := self._end()) not in _GONE:
                    break
        if status == 1:
            start = " ".join(_COMMAND[1:])
            raise RagLabError(f"The process that reads files does not start; run `{start}` to see why.")
        if status == -signal.SIGALRM:
            raise loading.LoadError(
                f"the file takes more than {seconds:g} s to read; split or remove it, or allow more by "
                "corpus.file_seconds."
            )
        raise loading.LoadError(
            f"the file is damaged, or takes more than {MAX_BYTES / 2**30:.0f} GiB of memory to read; split or remove "
            "it.",
            status not in _GONE,
        )

    def _end(self) -> int:
        """End the worker at once and return its exit status."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.kill()
        with suppress(BrokenPipeError):
            process.communicate()
        return process.returncode


worker = _Worker()


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "load": lambda path, source, name: loading.loaded_json(
        load(Path(path), source, {Path(path).suffix.lower(): FILE_READERS.find(name).value})
    ),
    **PAGES,
}


def main() -> None:
    """Answer requests until none can come, or none has come for a minute."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asks, who then ends this process
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no reply
    with suppress(ImportError, ValueError):  # not every system has such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    while select.select([sys.stdin], [], [], _IDLE_S)[0] and (line := sys.stdin.buffer.readline()):
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, request["seconds"])
        try:
            reply = json.dumps({"value": FUNCTIONS[request["do"]](*request["arguments"])}).encode()
        except loading.LoadError as error:
            reply = json.dumps({"error": str(error), "lasting": error.lasting}).encode()
        except MemoryError:
            os._exit(_OUT_OF_MEMORY)
        signal.setitimer(signal.ITIMER_REAL, 0)
        replies.write(reply + b"\n")
        replies.flush()


_VERSION = 8  # raised when a loader or the normalization changes its results
_LIBRARIES = ("charset-normalizer", "webencodings", "lxml", "mammoth", "python-calamine")
_PDF = {"text": "pdf_text", "tables": "pdf_tables", "pdfium": "pdfium", "vision": "pdf_text"}


def file_reader_of(reader: Any) -> tuple[loading.Loader, Mapping[str, Any]]:
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
    return custom, custom.code.identity()


def _loading(factory: Any, parameters: Mapping[str, Any]) -> Callable[[Path], Any]:
    @wraps(factory, updated=())
    def load(path: Path) -> Any:
        return factory(str(path), **parameters).load()

    return load


class CustomFileReader:
    """A custom reader `(path) -> text, texts of pages, LangChain documents, or Loaded`, as a loader."""

    def __init__(self, module: Module) -> None:
        self.code = CustomCode(module, f"file reader {module.name!r}")

    def __call__(self, path: Path, source: str) -> loading.Loaded:
        """Read a file."""
        try:
            loaded: loading.Loaded = self.code.call(path, accept=lambda returned: self._accepted(returned, source))
        except CustomCodeError as error:
            raise loading.LoadError(f"{error}.", lasting=False) from None
        return loaded

    def _accepted(self, returned: Any, source: str) -> loading.Loaded:
        if isinstance(returned, str):
            return loading.Loaded((Document(source, None, returned),))
        if isinstance(returned, loading.Loaded):
            loaded = returned
        elif isinstance(returned, Sequence) and not isinstance(returned, bytes):
            texts = [getattr(item, "page_content", item) for item in returned]
            about = [getattr(item, "metadata", None) or {} for item in returned]
            # LangChain counts pages from 0; texts without numbers are pages in order, if several.
            numbers = [n + 1 for each in about if isinstance(n := each.get("page"), int) and n >= 0]
            in_order = [None] if len(about) == 1 else range(1, len(about) + 1)
            pages = numbers if len(set(numbers)) == len(about) else in_order
            documents = (
                Document(source, page, cast(str, text), str(each.get("title") or ""))
                for page, text, each in zip(pages, texts, about, strict=True)
            )
            loaded = loading.Loaded(tuple(documents))
        else:
            raise CustomCodeError(
                f"the {self.code.what} returned {type(returned).__name__} where text, or texts, are due"
            )
        for document in loaded.documents:
            if not isinstance(document, Document) or not isinstance(document.text, str):
                wrong = document.text if isinstance(document, Document) else document
                raise CustomCodeError(f"the {self.code.what} returned {type(wrong).__name__} where text is due")
        if len({document.page for document in loaded.documents}) < len(loaded.documents):
            raise CustomCodeError(f"the {self.code.what} returned two documents of one page")
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
        loader: loading.Loader = FILE_READERS.find(_PDF[config.pdf]).value
        if vision is not None:
            call = partial(worker.call, seconds=config.file_seconds)
            memory = Memory(home / "vision.sqlite")
            loader = VisionPdf(vision, config.vision_dpi, config.vision_min_score, memory, call)
            self._pdf.update(loader.identity())
        named = {suffix: file_reader_of(reader) for suffix, reader in {**config.readers, **overrides}.items()}
        self._custom = {suffix: dict(identity) for suffix, (_, identity) in named.items()}
        readers = {suffix: reader for suffix, (reader, _) in named.items()}
        self.loaders: Mapping[str, loading.Loader] = {**LOADERS, ".pdf": loader, **readers}
        self._seconds = config.file_seconds
        self._libraries = {name: version(name) for name in _LIBRARIES}  # looked up on disk, and asked for each file

    def load(self, path: Path, source: str) -> loading.Loaded:
        """Read one file; see `load_bounded`."""
        return load_bounded(path, source, self.loaders, self._seconds)

    def identity(self) -> Mapping[str, Any]:
        """Return whatever can change a document beside its file."""
        found = {"version": _VERSION, "pdf": self._pdf, "own": self._custom, "libraries": self._libraries}
        return found if self._seconds == SECONDS else {**found, "seconds": self._seconds}

    def identity_of(self, suffix: str) -> Mapping[str, Any]:
        """Return whatever can change the documents of a file with this suffix."""
        pdf = self._pdf if suffix == ".pdf" else None
        return {**self.identity(), "pdf": pdf, "own": self._custom.get(suffix), "suffix": suffix}


if __name__ == "__main__":
    main()
