"""Files and folders that are there whole or not at all: written under another name and renamed.

With a folder the digests of its files are written. It is checked once in a process, and again when a file's size or
times say that it was touched: against crashes, full disks and hands, not against somebody who writes digests, too.
"""

import hashlib
import json
import logging
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_lab._kit.home import PRIVATE

SEAL = "digests.json"

_Stamps = dict[str, tuple[int, int, int, int]]  # size, times and place of each file
_found_whole: dict[Path, _Stamps] = {}

_LOGGER = logging.getLogger(__name__)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path that replaces `path` at the end of the block; where the block fails, `path` stays as it was."""
    partial = path.with_name(f"{path.name}.partial-{uuid.uuid4().hex}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def whole_folder(target: Path, except_in: str = "") -> Iterator[Path | None]:
    """Yield a path that becomes `target` once the block has made a folder there; None where `target` is there, whole.

    A folder of which a file was changed, added or removed is not whole: one sentence is logged, and it is built again.
    Only one process at a time is in the block, also where any may be killed; the others wait, and find its result.
    `except_in` is a folder in it whose files are not of its making and say nothing about it.
    """
    if is_whole(target, except_in):
        yield None
        return
    from filelock import FileLock

    target.parent.mkdir(PRIVATE, parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if is_whole(target, except_in):
            yield None
            return
        if target.exists():
            _LOGGER.warning("The folder %s was damaged (%s); it is built again.", target, damage(target, except_in))
        for leftover in target.parent.glob(f"{target.name}.partial-*"):  # of a process that was killed
            shutil.rmtree(leftover)
        partial = target.parent / f"{target.name}.partial-{uuid.uuid4().hex}"
        try:
            yield partial
            seal(partial, except_in)
            put_in_place(partial, target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def is_whole(target: Path, except_in: str = "") -> bool:
    """Return whether a folder that `whole_folder` made is there and as it was made."""
    return target.exists() and not damage(target, except_in)


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


def seal(folder: Path, except_in: str = "") -> None:
    """Write the digests of all files below `folder`, except those in its folder `except_in`."""
    digests = {name: _digest(folder / name) for name in _names(folder, except_in)}
    (folder / SEAL).write_text(json.dumps(digests, ensure_ascii=False, indent=1), encoding="utf-8")


def damage(folder: Path, except_in: str = "") -> str:
    """Return the name of a file that is not as `seal` left it (changed, missing, added), "" where all are."""
    stamps: _Stamps = {}
    for name in _names(folder, except_in):
        try:
            status = (folder / name).stat()
        except OSError:  # a link that leads nowhere, or a file that went just now
            continue
        stamps[name] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    if stamps == _found_whole.get(folder):
        return ""
    try:
        sealed = json.loads((folder / SEAL).read_bytes())
    except (OSError, ValueError):
        return SEAL
    names = stamps.keys() - {SEAL}
    if not isinstance(sealed, dict) or not sealed:
        return SEAL
    if differing := sorted(sealed.keys() ^ names):
        return differing[0]
    for name in sorted(names):
        try:
            is_changed = sealed[name] != _digest(folder / name)
        except OSError:
            is_changed = True
        if is_changed:
            return name
    _found_whole[folder] = stamps
    return ""


def _names(folder: Path, except_in: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        if except_in and Path(parent) == folder:
            folders[:] = [name for name in folders if name != except_in]
        yield from (Path(parent, name).relative_to(folder).as_posix() for name in names)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
