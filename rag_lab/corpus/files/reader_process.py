"""Reading files in a worker process: parsers of untrusted files hang, fill memory and crash, and then end it alone.

There is one worker in a process; it reads file after file, and is replaced once a file has ended it. `python -m
rag_lab.corpus.files.reader_process` answers requests on stdin by replies on stdout, each a line of JSON. A request
that takes too long ends the worker by an alarm, also where a parser's C code hears no Python; too much memory ends it,
too. A new file type is one file in `corpus/load` and one line in `corpus/config.py`.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rag_lab.corpus.config import BY_SUFFIX, FILE_READERS
from rag_lab.corpus.load import loader as loading
from rag_lab.corpus.load.pdf_vision import PAGES
from rag_lab.corpus.normalize import normalize_documents
from rag_lab.errors import RagLabError

_MAX_LINE_CHARS = 1_000_000


_PDF = "pdf_text" if find_spec("pymupdf") else "pdfium"  # where no configuration says how a PDF is read

LOADERS: dict[str, loading.Loader] = {
    ".pdf": FILE_READERS.find(_PDF).value,
    **{suffix: FILE_READERS.find(name).value for suffix, name in BY_SUFFIX.items()},
    loading.SUFFIX: loading.load_documents,
}
ALLOWED = ", ".join(suffix for suffix in LOADERS if suffix != loading.SUFFIX)  # what people put into a folder
MAX_BYTES = 2 * 2**30  # of the worker's address space
SECONDS = 120  # in which a file is read, where no configuration says otherwise
_COMMAND = (sys.executable, "-P", "-m", "rag_lab.corpus.files.reader_process")
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # each thread takes address space
_GONE = (0, -signal.SIGKILL, -signal.SIGTERM)  # it was idle for long, or somebody ended it: no fault of the file
_OUT_OF_MEMORY = 3  # exit status
_IDLE_S = 60.0


def load(path: Path, source: str, loaders: Mapping[str, loading.Loader] = LOADERS) -> loading.Loaded:
    """Read one file by the loader of its suffix, which is matched without regard to case, and normalize its text.

    The title is "" where the file has none of its own: it may have been read under another name.
    """
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
        raise loading.LoadError(
            f"the file has a line of {longest:,} characters, which is no prose; break it into lines."
        )
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
    """The process, started when it is first asked. One thread at a time asks it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0  # of the process that started it: a fork must not ask its parent's

    def call(self, name: str, *arguments: Any, seconds: float) -> Any:
        """Return what one of `FUNCTIONS` returns in the process."""
        request = {"do": name, "arguments": arguments, "seconds": seconds}
        with self._lock:
            status = 0
            for _ in range(2):
                if line := self._reply(json.dumps(request).encode() + b"\n"):
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

    def _reply(self, request: bytes) -> bytes:
        """Return the worker's reply, or b"" where it has ended."""
        if self._process is None or self._pid != os.getpid():
            self._pid = os.getpid()
            self._process = subprocess.Popen(  # noqa: S603 - ours
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD},
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: S101 - they are pipes
        try:
            with suppress(BrokenPipeError):
                stdin.write(request)
                stdin.flush()
            return stdout.readline()
        except BaseException:  # Ctrl-C: nobody waits for the reply
            self._end()
            raise

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


def _load(path: str, source: str, reader: str) -> Any:
    file = Path(path)
    return loading.loaded_json(load(file, source, {file.suffix.lower(): FILE_READERS.find(reader).value}))


FUNCTIONS: Mapping[str, Callable[..., Any]] = {"load": _load, **PAGES}


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


if __name__ == "__main__":
    main()
