"""A folder that is there whole or not at all, also where several processes want to make it and any may be killed."""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_lab._kit.sealed_folder import damage, seal

_LOGGER = logging.getLogger(__name__)


@contextmanager
def whole_folder(target: Path, apart: str = "") -> Iterator[Path | None]:
    """Give a path that becomes `target` once the block has made a folder there; None where `target` is there, whole.

    A folder of which a file was changed, added or lost is not whole: one sentence says so, and it is made again. Only
    one process at a time is in the block; the others wait, and find what it made.

    Args:
        target: the folder.
        apart: a folder in it whose files are not of its making and say nothing about it.
    """
    if is_whole(target, apart):
        yield None
        return
    from filelock import FileLock

    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if is_whole(target, apart):
            yield None
            return
        if target.exists():
            _LOGGER.warning("The folder %s was damaged (%s); it is built again.", target, damage(target, apart))
        for leftover in target.parent.glob(f"{target.name}.partial-*"):  # of a process that was killed
            shutil.rmtree(leftover)
        partial = target.parent / f"{target.name}.partial-{uuid.uuid4().hex}"
        try:
            yield partial
            seal(partial, apart)
            put_in_place(partial, target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def is_whole(target: Path, apart: str = "") -> bool:
    """Tell whether a folder that `whole_folder` made is there and as it was made."""
    return target.exists() and not damage(target, apart)


def put_in_place(folder: Path, target: Path) -> None:
    """Rename `folder` to `target`; what was there is deleted, or comes back if the renaming fails."""
    aside = folder.with_name(f"{folder.name}-before")
    if target.exists():
        target.rename(aside)
    try:
        folder.rename(target)
    except OSError:
        if aside.exists():
            aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)
