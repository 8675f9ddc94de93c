"""How much of a disk a file or a folder takes, and the sentence where there is no room for more."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_lab.errors import RagLabError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def bytes_on_disk(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder; 0 where nothing is there."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


@contextmanager
def room_on_disk(place: Path | None = None) -> Iterator[None]:
    """Say in one sentence that a disk is full where something in this block finds it so, which is mostly at `place`.

    Raises:
        RagLabError: then.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        where = f" for {error.filename or place}" if error.filename or place else ""
        raise RagLabError(
            f"There is no room{where} ({error.strerror}); make room on that disk and start the same command again: it "
            "goes on."
        ) from error
