"""Temporary folders that know their owner: what a killed process has left is deleted by the next that makes one."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from rag_lab._kit.machine.own_file import is_own, read_own
from rag_lab._kit.process import Process

OWNER_FILE = "owner.json"
_PREFIX = "rag_lab_"
_MOST_BYTES = 4096  # of that file


def scratch_folder(kind: str) -> tempfile.TemporaryDirectory[str]:
    """Return a new temporary folder, which only this user may enter; it is this process's as long as that runs."""
    remove_left()
    folder = tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{kind}_")
    write_owner(Path(folder.name))
    return folder


def write_owner(folder: Path) -> None:
    """Note in a folder that it is this process's."""
    (folder / OWNER_FILE).write_text(json.dumps(Process.this()), encoding="utf-8")


def owner_runs(folder: Path) -> bool | None:
    """Tell whether the process whose folder it is still runs; None where nobody can know, or another user made it."""
    if not is_own(folder):
        return None
    try:
        return Process(*json.loads(read_own(folder / OWNER_FILE, _MOST_BYTES))).runs()
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return None


def remove_left() -> None:
    """Delete the temporary folders of this user's processes that have ended on this machine."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if owner_runs(folder) is False:
            shutil.rmtree(folder, ignore_errors=True)
