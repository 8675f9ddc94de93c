"""Models as kernels of a sweep see them: what needs no weights is done here, a process that holds them is asked.

Kernels find these processes by a folder that the environment names. It lies on this machine, only its owner may enter
it, and it lives as long as the sweep. A process is started where there is none, and once again where it died. A call is
a connection of its own, so threads and forked kernels share nothing, and the end of either side is seen at once. What
passes between them is JSON, with the bytes of arrays and images in base 64; no pickles.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from filelock import FileLock
from pydantic import TypeAdapter

from rag_lab import errors
from rag_lab._kit.digest import digest
from rag_lab._kit.machine import OWNER_FILE, Process, owner_runs, remove_scratch, write_owner
from rag_lab._kit.registry import Kind
from rag_lab.models import providers
from rag_lab.models.local.local_model import LocalModel
from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.redaction import redact_value

BUDGET_VARIABLE = "RAG_LAB_MODEL_MEMORY_GB"
HOST_VARIABLE = "RAG_LAB_MODEL_HOST"
OFF = "off"  # what a user sets: every kernel loads its models itself
PEAKS_MB: dict[str, int] = {}  # by the process that held a model: the most while it computed for this kernel
_MOST_DEATHS = 2
_STARTED: list[subprocess.Popen[bytes]] = []  # held until they end, so that their numbers are given back
_TEXTS_COUNTED = 65_536
_NAME_LETTERS = 16
_LOOK_EVERY_S = 0.02


def model_budget_mb() -> float | None:
    """Return the MiB that all models of a sweep may take here together; None where the user leaves that open."""
    given, budget_gb = os.environ.get(BUDGET_VARIABLE, "").strip(), 0.0
    if not given:
        return None
    with suppress(ValueError):
        budget_gb = float(given)
    if not 0.0 < budget_gb < float("inf"):
        raise errors.ConfigError(
            f"{BUDGET_VARIABLE} is {given!r}; give a positive number of gigabytes, such as 16, or none."
        )
    return budget_gb * 1024


@contextmanager
def model_host() -> Iterator[dict[str, str]]:
    """Yield the environment by which kernels share models, {} if switched off; at the end their holders have ended."""
    model_budget_mb()
    if os.environ.get(HOST_VARIABLE) == OFF:
        yield {}
        return
    remove_scratch()
    folder = Path(tempfile.mkdtemp(prefix="rag_lab_models_"))  # mode 700
    write_owner(folder)
    try:
        yield {HOST_VARIABLE: str(folder)}
    finally:
        (folder / OWNER_FILE).unlink(missing_ok=True)
        for holder in model_processes(folder):  # in the midst of whatever nobody waits for any more
            for sign in (signal.SIGTERM, signal.SIGKILL):
                if holder.process.runs():
                    with suppress(ProcessLookupError):
                        os.kill(holder.process.pid, sign)
                    _gone(holder.process)
        shutil.rmtree(folder, ignore_errors=True)


def host_folder() -> Path | None:
    """Return the folder that the environment names, where it is on this machine and its sweep runs; else None."""
    given = os.environ.get(HOST_VARIABLE, "")
    folder = Path(given)
    return folder if given and given != OFF and owner_runs(folder) else None


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A process that holds a model. `name` is that of its socket and its record, `used_s` when it last ended a call."""

    name: str
    process: Process
    model: str
    device: str  # cpu or cuda
    memory_mb: float
    used_s: float


def model_processes(folder: Path) -> list[ProcessRecord]:
    """Return the processes that hold a model, the longest unused first; those that have ended are left out."""
    found = [holder for path in folder.glob("*.holder") if (holder := _read_process(path)) is not None]
    return sorted((one for one in found if one.process.runs()), key=lambda one: one.used_s)


def write_process(folder: Path, name: str, model: str, device: str, memory_mb: float) -> None:
    """Record that this process holds a model."""
    path = folder / f"{name}.holder"
    known = {"process": Process.of(), "model": model, "device": device, "memory_mb": memory_mb}
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(known), encoding="utf-8")
    partial.replace(path)


def socket_path(folder: Path, name: str) -> str:
    """Return where the process of this name listens; short, as systems allow about 100 characters."""
    return str(folder / f"{name}.sock")


def _read_process(path: Path) -> ProcessRecord | None:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        used_s = path.stat().st_mtime
    except (OSError, ValueError):  # it has just gone
        return None
    known["process"] = Process(*known["process"])
    return ProcessRecord(name=path.stem, used_s=used_s, **known)


def _gone(process: Process) -> None:
    """Wait until a process has ended; not longer than one that is ended takes."""
    until_s = time.monotonic() + 5.0
    while process.runs() and time.monotonic() < until_s:
        time.sleep(_LOOK_EVERY_S)


REPLIES = TypeAdapter(list[ChatReply])
_TEXTS = TypeAdapter(list[str])
# What the process that holds a model computes, and the type of what it is asked about.
CALLS: dict[str, TypeAdapter[Any]] = {
    "generate": TypeAdapter(list[ChatRequest]),
    "count_tokens": TypeAdapter(str),
    "score": TypeAdapter(list[tuple[str, str]]),
    "embed_documents": _TEXTS,
    "embed_queries": _TEXTS,
}
_MOST_BYTES = 2**30  # of a message
_BYTES, _ROWS = "\0bytes", "\0rows"  # keys that no schema of a request has
_ERRORS = {
    kind.__name__: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.RagLabError)
}


def send(connection: Connection, message: Mapping[str, Any]) -> None:
    """Send a message of JSON values, dataclasses, bytes, and arrays of float32."""
    connection.send_bytes(json.dumps(message, default=_as_json).encode("ascii"))


def receive(connection: Connection) -> dict[str, Any]:
    """Wait for a message; of a dataclass, it has the fields."""
    try:
        found = json.loads(connection.recv_bytes(_MOST_BYTES), object_hook=_from_json)
    except (ValueError, TypeError, KeyError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise OSError("what was received is no message")
    return found


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return {_BYTES: b64encode(value).decode()}
    if isinstance(value, np.ndarray):
        return {_BYTES: b64encode(np.ascontiguousarray(value, "<f4").tobytes()).decode(), _ROWS: value.shape}
    return dict(value) if isinstance(value, Mapping) else {one.name: getattr(value, one.name) for one in fields(value)}


def _from_json(found: dict[str, Any]) -> Any:
    if _BYTES not in found:
        return found
    content = b64decode(found[_BYTES])
    return np.frombuffer(content, "<f4").reshape(found[_ROWS]).astype(np.float32) if _ROWS in found else content


def error_sent(error: BaseException) -> dict[str, str]:
    """Write an error as its kind and its sentence."""
    return {"kind": type(error).__name__, "sentence": str(error)}


def error_received(written: Mapping[str, str], model: str) -> errors.RagLabError:
    """Return the same error with the same sentence; what is none of the workbench's own is told of the model."""
    kind = _ERRORS.get(written["kind"])
    if kind is None:
        said = ": ".join(filter(None, (written["kind"], written["sentence"])))
        return errors.ModelError(f"The model {model} failed ({said}); see whether it fits in memory.")
    return kind.__new__(kind, written["sentence"])  # the sentence is cleaned already, and kinds take other arguments


def _start(folder: Path, name: str, kind: str, model: str) -> bool:
    """Start the process that holds a model and wait until it listens; return False where it died before it did."""
    if not owner_runs(folder):
        raise errors.ModelError(f"The sweep has ended, and with it the process that held {redact_value(model)}.")
    with FileLock(folder / f"{name}.lock"):
        try:
            Client(socket_path(folder, name), "AF_UNIX").close()
            return True
        except OSError:
            Path(socket_path(folder, name)).unlink(missing_ok=True)  # of one that died
        with (folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - a command of our own
                [sys.executable, "-P", "-m", "rag_lab.models.model_process", str(folder), name, kind, model],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={key: value for key, value in os.environ.items() if key != HOST_VARIABLE},
                start_new_session=True,  # neither Ctrl-C nor the end of this kernel reaches it
            )
        _STARTED[:] = [one for one in _STARTED if one.poll() is None] + [process]
        with cast(IO[bytes], process.stdout) as output:
            printed = output.read()  # once it has loaded; nothing where it died before
    if printed and (error := json.loads(printed).get("error")):
        raise error_received(error, redact_value(model))
    return bool(printed)


def load_ahead(folder: str, kind: Kind, model: str, made: Any) -> None:
    """Start the process that holds a model before a kernel asks it; what is wrong is told where one does."""
    if folder and isinstance(made, LocalModel):
        # A large chat model may take the memory of what is at work.
        with suppress(errors.ModelError):
            if getattr(made, "is_small", kind is not providers.CHAT_MODELS):
                _start(Path(folder), digest(made.weights_held)[:_NAME_LETTERS], kind.name, model)


def _ask(folder: Path, name: str, call: Mapping[str, Any]) -> Any:
    """Return what the process that holds the model computes; what the model raises there is raised here."""
    shown = redact_value(call["model"])
    deaths, is_new = 0, False
    while deaths < _MOST_DEATHS:
        try:
            with Client(socket_path(folder, name), "AF_UNIX") as connection:
                send(connection, call)
                reply = receive(connection)
        except (FileNotFoundError, ConnectionRefusedError):
            deaths += is_new  # it listened, and died before it was asked
            if not _start(folder, name, call["kind"], call["model"]):
                break
            is_new = True
        except (EOFError, OSError):
            deaths, is_new = deaths + 1, False
            if (record := _read_process(folder / f"{name}.holder")) is not None:
                _gone(record.process)  # it may still be seen, and still be knocked at, while it dies
        else:
            is_new = False
            if "error" in reply:
                raise error_received(reply["error"], shown)
            if "ended" not in reply:  # else its memory was needed, and another process follows
                PEAKS_MB[name] = max(PEAKS_MB.get(name, 0), reply["peak_mb"] or 0)
                return reply["value"]
    raise errors.ModelError(
        f"The process that holds {shown} died, and once more when it was started again; the usual cause "
        "is that memory ran out: choose a smaller model, or one that is held in fewer bits."
    )


def hosted(kind: Kind, model: str, made: Any) -> Any:
    """Return the model `made`, which asks the process that holds its weights, where there are such and a folder."""
    folder = host_folder()
    if folder is None or not isinstance(made, LocalModel):
        return made
    local: Any = made

    def ask(do: str, value: Any) -> Any:
        name = digest(local.weights_held)[:_NAME_LETTERS]
        return _ask(folder, name, {"do": do, "value": value, "kind": kind.name, "model": model})

    if kind is providers.CHAT_MODELS:
        local.load_ahead = partial(load_ahead, str(folder), kind, model, local)
        count = local.count_tokens
        counted = lru_cache(_TEXTS_COUNTED)(partial(ask, "count_tokens"))
        # only where the tokenizer is unknown the process counts
        local.count_tokens = lambda text: count(text) if local.counts_alone else counted(text)
        local.generate = lambda requests: REPLIES.validate_python(ask("generate", [*requests])) if requests else []
    elif kind is providers.EMBEDDERS:
        for method in ("embed_documents", "embed_queries"):
            setattr(local, method, lambda texts, method=method: ask(method, [*texts]))
    else:
        local.score = lambda pairs: ask("score", [*pairs]) if pairs else []
    return local
