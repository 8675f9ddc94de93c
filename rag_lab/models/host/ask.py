"""Asking the process that holds a model: it is started where there is none, and once again where it died.

A call is a connection of its own, so threads and forked kernels share nothing, and the end of either side is seen at
once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from multiprocessing.connection import Client
from pathlib import Path
from typing import IO, Any, cast

from filelock import FileLock

from rag_lab.errors import ModelError
from rag_lab.models.host.messages import Sent, error_received, receive, send
from rag_lab.models.host.place import HOST_VARIABLE, await_end, is_open, log_path, socket_path
from rag_lab.redaction import redact_value

_MOST_DEATHS = 2
_STARTED: list[subprocess.Popen[bytes]] = []  # held until they end, so that their numbers are given back
_PEAKS_MB: dict[str, int] = {}  # by the process that held a model: the most while it computed for this kernel


def ask(folder: Path, name: str, kind: str, model: str, asked: Sent) -> Sent:
    """Return the reply of the process of this name, which holds `model`.

    Raises:
        RagLabError: what the model raised there.
        ModelError: if the process died, was started again, and died again; or if the model failed there otherwise.
    """
    message = Sent({**asked.head, "kind": kind, "model": model}, asked.parts)
    deaths, is_new = 0, False
    while deaths < _MOST_DEATHS:
        try:
            with Client(socket_path(folder, name), "AF_UNIX") as connection:
                send(connection, message)
                reply = receive(connection)
        except (FileNotFoundError, ConnectionRefusedError):
            deaths += is_new  # it listened, and died before it was asked
            _start(folder, name, kind, model)
            is_new = True
        except (EOFError, OSError):
            deaths, is_new = deaths + 1, False
            await_end(folder, name)
        else:
            is_new = False
            if "error" in reply.head:
                raise error_received(reply.head["error"], redact_value(model))
            if "ended" not in reply.head:  # else its memory was needed, and another process follows
                _PEAKS_MB[name] = max(_PEAKS_MB.get(name, 0), reply.head["peak_mb"] or 0)
                return reply
    raise _died(model)


def held_elsewhere_mb() -> int:
    """Return the memory that processes which hold models took at their peaks for this kernel's calls, in MiB."""
    return sum(_PEAKS_MB.values())


def _start(folder: Path, name: str, kind: str, model: str) -> None:
    """Start the process that holds a model and wait until it listens; whoever comes second finds it there."""
    if not is_open(folder):
        raise ModelError(f"The sweep has ended, and with it the process that held {redact_value(model)}.")
    with FileLock(folder / "starting.lock"):
        if _listens(folder, name):
            return
        with log_path(folder, name).open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - a command of our own
                [sys.executable, "-P", "-m", "rag_lab.models.host.holder_process", str(folder), name, kind, model],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={key: value for key, value in os.environ.items() if key != HOST_VARIABLE},
                start_new_session=True,  # neither Ctrl-C nor the end of this kernel reaches it
            )
        _STARTED[:] = [one for one in _STARTED if one.poll() is None] + [process]
        said = _first_words(process)
    if said is None:
        raise _died(model)
    if "error" in said:
        raise error_received(said["error"], redact_value(model))


def _listens(folder: Path, name: str) -> bool:
    try:
        Client(socket_path(folder, name), "AF_UNIX").close()
    except OSError:
        Path(socket_path(folder, name)).unlink(missing_ok=True)  # of one that died
        return False
    return True


def _first_words(process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
    """Return what the process says once it has loaded; None where it died before."""
    with cast(IO[bytes], process.stdout) as told:
        said = told.read()
    return json.loads(said) if said else None


def _died(model: str) -> ModelError:
    return ModelError(
        f"The process that holds {redact_value(model)} died, and once more when it was started again; the usual cause "
        "is that memory ran out: choose a smaller model, or one that is held in fewer bits."
    )
