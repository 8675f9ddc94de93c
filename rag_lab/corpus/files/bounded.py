"""Reading in a worker process with limits of time and memory (see `reader_process`), from the side of who asks.

There is one worker in a process. It reads file after file, and is replaced once a file has ended it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rag_lab.corpus.files.file_readers import FILE_READERS
from rag_lab.corpus.files.loaders import LOADERS, load
from rag_lab.corpus.load.loader import Loaded, Loader, LoadError, loaded_from
from rag_lab.errors import RagLabError

MAX_BYTES = 2 * 2**30  # of the worker's address space
SECONDS = 120  # in which a file is read, where no configuration says otherwise
_COMMAND = (sys.executable, "-P", "-m", "rag_lab.corpus.files.reader_process")
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # each thread takes address space
_GONE = (0, -signal.SIGKILL, -signal.SIGTERM)  # it was idle for long, or somebody ended it: no fault of the file


def load_bounded(path: Path, source: str, loaders: Mapping[str, Loader] = LOADERS, seconds: float = SECONDS) -> Loaded:
    """Read one file as `load` does, in the worker; by a reader that is not ours in this process.

    Raises:
        LoadError: if the file cannot be used, or takes more time or memory than it may.
        KeyError: if no loader reads the suffix.
    """
    loader = loaders[path.suffix.lower()]
    target = f"{loader.__module__}:{getattr(loader, '__qualname__', '')}"
    name = next((name for name, built in FILE_READERS.built_in.items() if built.target == target), "")
    if not name:
        return load(path, source, loaders)
    return loaded_from(call_bounded("load", str(path.absolute()), source, name, seconds=seconds), source)


def call_bounded(name: str, *arguments: Any, seconds: float) -> Any:
    """Return what a function of the worker returns, as JSON.

    Raises:
        LoadError: if it raised one, or took more time or memory than it may.
        RagLabError: if the worker does not start.
    """
    return _worker.call({"do": name, "arguments": arguments, "seconds": seconds})


class _Worker:
    """The process, started when it is first asked. One thread at a time asks it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0  # of the process that started it: a fork must not ask its parent's

    def call(self, request: Mapping[str, Any]) -> Any:
        with self._lock:
            status = 0
            for _ in range(2):
                if reply := self._reply(json.dumps(request).encode() + b"\n"):
                    return _value(json.loads(reply))
                if (status := self._end()) not in _GONE:
                    break
        raise _failure(status, request["seconds"])

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


def _value(reply: Mapping[str, Any]) -> Any:
    if "error" in reply:
        raise LoadError(reply["error"], reply["lasting"])
    return reply["value"]


def _failure(status: int, seconds: float) -> RagLabError:
    if status == 1:
        return RagLabError(f"The process that reads files does not start; run `{' '.join(_COMMAND[1:])}` to see why.")
    if status == -signal.SIGALRM:
        return LoadError(
            f"the file takes more than {seconds:g} s to read; split or remove it, or allow more by corpus.file_seconds."
        )
    memory = f"{MAX_BYTES / 2**30:.0f} GiB of memory"
    return LoadError(
        f"the file is damaged, or takes more than {memory} to read; split or remove it.", status not in _GONE
    )


_worker = _Worker()
