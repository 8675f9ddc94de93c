"""Where a sweep's kernels find the processes that serve their models: a folder that the environment names.

The folder lies on this machine, only its owner may enter it, and it lives as long as the sweep. Nothing is started for
it: the first kernel that needs a model does.
"""

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rag_lab._kit.machine import OWNER_FILE, Process, owner_runs, remove_scratch, write_owner
from rag_lab.errors import ConfigError

BUDGET_VARIABLE = "RAG_LAB_MODEL_MEMORY_GB"
HOST_VARIABLE = "RAG_LAB_MODEL_HOST"
OFF = "off"  # what a user sets: every kernel loads its models itself
_END_S = 5.0
_LOOK_EVERY_S = 0.02


def model_budget_mb() -> float | None:
    """Return the MiB that all models of a sweep may take here together; None where the user leaves that open."""
    given, budget_gb = os.environ.get(BUDGET_VARIABLE, "").strip(), 0.0
    if not given:
        return None
    with suppress(ValueError):
        budget_gb = float(given)
    if not 0.0 < budget_gb < float("inf"):
        raise ConfigError(f"{BUDGET_VARIABLE} is {given!r}; give a positive number of gigabytes, such as 16, or none.")
    return budget_gb * 1024


@contextmanager
def model_host() -> Iterator[dict[str, str]]:
    """Yield the environment by which kernels share models; at the end whatever holds one has ended.

    It is empty where the user has switched this off.
    """
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
    return folder if given and given != OFF and is_open(folder) else None


def is_open(folder: Path) -> bool:
    """Tell whether the sweep that made the folder runs, on this machine."""
    return owner_runs(folder) is True


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


def await_end(folder: Path, name: str) -> None:
    """Wait until the process of this name is gone, which may still be seen, and still be knocked at, while it dies."""
    holder = _read_process(folder / f"{name}.holder")
    if holder is not None:
        _gone(holder.process)


def write_process(folder: Path, name: str, model: str, device: str, memory_mb: float) -> None:
    """Record that this process holds a model."""
    path = folder / f"{name}.holder"
    known = {"process": Process.this(), "model": model, "device": device, "memory_mb": memory_mb}
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
    until_s = time.monotonic() + _END_S
    while process.runs() and time.monotonic() < until_s:
        time.sleep(_LOOK_EVERY_S)
