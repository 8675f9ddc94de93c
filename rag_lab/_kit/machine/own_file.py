"""Whose a file is: on a machine with several users, what another one has put there is not obeyed."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def is_own(path: Path) -> bool:
    """Tell whether this user owns what is at `path`, and the link to it where `path` is a link."""
    try:
        return _is_mine(path.lstat()) and _is_mine(path.stat())
    except OSError:
        return False


def read_own(path: Path, most_bytes: int) -> bytes:
    """Return what is in a file; it must be regular, this user's, and of at most `most_bytes`.

    Raises:
        OSError: if there is no such file.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # a FIFO would be waited for
    with os.fdopen(handle, "rb") as file:
        state = os.fstat(handle)
        content = file.read(most_bytes + 1) if stat.S_ISREG(state.st_mode) and _is_mine(state) else None
    if content is None or len(content) > most_bytes or not is_own(path):
        raise PermissionError(f"{path} is not a small file of this user")
    return content


def _is_mine(state: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or state.st_uid == os.geteuid()
