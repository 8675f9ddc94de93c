"""The digests of a folder's files, written with them, so that damage is found before anything of it is read.

A folder is checked once in a process and again when a file's size or times say that it was touched. It holds against
crashes, full disks and hands, not against somebody who writes digests, too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

SEAL = "digests.json"

_Stamps = dict[str, tuple[int, int, int, int]]  # size, times and place of each file
_found_whole: dict[Path, _Stamps] = {}


def seal(folder: Path, apart: str = "") -> None:
    """Write the digests of all files below `folder`; those in its folder `apart` are looked after by others."""
    digests = {name: _digest(folder / name) for name in _names(folder, apart)}
    (folder / SEAL).write_text(json.dumps(digests, ensure_ascii=False, indent=1), encoding="utf-8")


def damage(folder: Path, apart: str = "") -> str:
    """Return the name of a file that is not as `seal` left it (changed, missing, added), "" where all are."""
    stamps = _stamps(folder, apart)
    if stamps == _found_whole.get(folder):
        return ""
    try:
        sealed = json.loads((folder / SEAL).read_bytes())
    except (OSError, ValueError):
        return SEAL
    names = stamps.keys() - {SEAL}
    if not isinstance(sealed, dict) or not sealed:
        return SEAL
    if unlike := sorted(sealed.keys() ^ names):
        return unlike[0]
    if changed := next((name for name in sorted(names) if sealed[name] != _readable_digest(folder / name)), ""):
        return changed
    _found_whole[folder] = stamps
    return ""


def _names(folder: Path, apart: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        if apart and Path(parent) == folder:
            folders[:] = [name for name in folders if name != apart]
        yield from (Path(parent, name).relative_to(folder).as_posix() for name in names)


def _stamps(folder: Path, apart: str) -> _Stamps:
    stamps = {}
    for name in _names(folder, apart):
        try:
            status = (folder / name).stat()
        except OSError:  # a link that leads nowhere, or a file that went just now
            continue
        stamps[name] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return stamps


def _readable_digest(path: Path) -> str:
    try:
        return _digest(path)
    except OSError:
        return ""


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
