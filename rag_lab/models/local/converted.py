"""Converted weights below the home folder: made once, under a lock, visible only when whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from rag_lab._kit.home import home_at_work
from rag_lab.errors import ModelError


def keep_converted(name: str, make: Callable[[Path], None]) -> Path:
    """Return `weights/name` of the home folder, calling `make` with a temporary path if it is not there yet.

    Two processes that ask at once make it once; a killed one leaves nothing under the final name.

    Raises:
        ModelError: if the folder cannot be written.
    """
    from filelock import FileLock

    target = home_at_work() / "weights" / name
    if target.exists():
        return target
    partial = target.with_name(f"{name}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_name(f"{name}.lock")):
            if not target.exists():
                _remove(partial)
                make(partial)
                partial.replace(target)
    except OSError as error:
        raise ModelError(
            f"Cannot write converted weights to {target.parent}: {error.strerror or error}; free some space or set "
            "RAG_LAB_HOME to another folder."
        ) from error
    return target


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
