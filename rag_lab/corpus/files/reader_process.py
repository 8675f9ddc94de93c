"""A worker process that reads files: parsers of untrusted files hang, fill memory and crash, and then end it alone.

`python -m rag_lab.corpus.files.reader_process` answers requests on stdin by replies on stdout, each a line of JSON. A
request that takes too long ends the process by an alarm, also where a parser's C code hears no Python; too much memory
ends it, too. Who asks says so of the file, and starts another process.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rag_lab.corpus.files.bounded import MAX_BYTES
from rag_lab.corpus.files.file_readers import FILE_READERS
from rag_lab.corpus.files.loaders import load
from rag_lab.corpus.load.loader import LoadError, loaded_json
from rag_lab.corpus.load.pdf.vision import PAGES

_OUT_OF_MEMORY = 3  # exit status
_IDLE_S = 60.0


def _load(path: str, source: str, reader: str) -> Any:
    file = Path(path)
    return loaded_json(load(file, source, {file.suffix.lower(): FILE_READERS.find(reader).made}))


FUNCTIONS: Mapping[str, Callable[..., Any]] = {"load": _load, **PAGES}


def main() -> None:
    """Answer requests until none can come, or none has come for a minute."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asks, who then ends this process
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no reply
    _limit_memory()
    while select.select([sys.stdin], [], [], _IDLE_S)[0] and (line := sys.stdin.buffer.readline()):
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, request["seconds"])
        try:
            reply = json.dumps(_reply(request["do"], request["arguments"])).encode()
        except MemoryError:
            os._exit(_OUT_OF_MEMORY)
        signal.setitimer(signal.ITIMER_REAL, 0)
        replies.write(reply + b"\n")
        replies.flush()


def _reply(name: str, arguments: list[Any]) -> dict[str, Any]:
    try:
        return {"value": FUNCTIONS[name](*arguments)}
    except LoadError as error:
        return {"error": str(error), "lasting": error.lasting}


def _limit_memory() -> None:
    with suppress(ImportError, ValueError):  # not every system has such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))


if __name__ == "__main__":
    main()
