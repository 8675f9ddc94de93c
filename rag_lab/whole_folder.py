"""A folder that is there whole or not at all, also where several processes want to make it and any may be killed."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_folder(target: Path) -> Iterator[Path | None]:
    """Give a path that becomes `target` once the block has made a folder there; None where `target` is there already.

    Only one process at a time is in the block; the others wait, and find what it made.
    """
    if target.exists():
        yield None
        return
    from filelock import FileLock

    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if target.exists():
            yield None
            return
        for leftover in target.parent.glob(f"{target.name}.partial-*"):  # of a process that was killed
            shutil.rmtree(leftover)
        partial = target.parent / f"{target.name}.partial-{uuid.uuid4().hex}"
        try:
            yield partial
            partial.replace(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
