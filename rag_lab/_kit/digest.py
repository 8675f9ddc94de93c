"""Digests of values and source code, names made of them, and files and folders that are there whole or not at all.

Those are written under another name and renamed. With a folder the digests of its files are written. It is checked once
in a process, and again when a file's size or times say that it was touched: against crashes, full disks and hands, not
against somebody who writes digests, too.
"""

import hashlib
import json
import logging
import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import xxhash

from rag_lab._kit.home import PRIVATE

_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_SYLLABLES = 5  # one of 1.7 billion words


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value, the same for any key order."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def canonical(value: Any) -> str:
    """Return a JSON value as text, the same for any key order."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest_word(value: Any) -> str:
    """Return the digest of a JSON value as a word of five syllables, such as `bakimotura`, that people can say."""
    number, word = int(digest(value), 16), ""
    for _ in range(_SYLLABLES):
        number, consonant = divmod(number, len(_CONSONANTS))
        number, vowel = divmod(number, len(_VOWELS))
        word += _CONSONANTS[consonant] + _VOWELS[vowel]
    return word


def short_name(text: str, max_length: int, value: Any) -> str:
    """Return `text`, shortened at a word if it has more than `max_length` characters, and distinct for each `value`."""
    if len(text) <= max_length:
        return text
    word = digest_word(value)
    short = re.split(r"[^A-Za-z0-9]+(?=[A-Za-z0-9]*$)", text[: max_length - len(word) - 1])[0]
    return f"{short.removesuffix('_and')}-{word}"


def source_digest(target: Any) -> str:
    """Return the digest of the class or function `target`, so that an edited one is never taken for the one before.

    Of a file, it covers the file and the files of the same folder that it imports; of a notebook's cell, the code and
    whatever of the notebook that code names; of what has no name, such as a lambda, also its code and what it closes
    over.
    """
    module = sys.modules.get(getattr(target, "__module__", ""))
    path = _file(module)
    if module is None or path is None or module.__name__ == "__main__":
        return digest(list(_cells(target, set())))
    found, waiting = {path}, [module]
    while waiting:
        for value in list(vars(waiting.pop()).values()):
            named = sys.modules.get(getattr(value, "__module__", None) or "")
            other = value if isinstance(value, ModuleType) else named
            file = _file(other)
            if other is not None and file is not None and file.parent == path.parent and file not in found:
                found.add(file)
                waiting.append(other)
    files = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(found)}
    is_named = "<" not in getattr(target, "__qualname__", "")
    return digest(files if is_named else [files, *_cells(target, set())])


def _file(module: ModuleType | None) -> Path | None:
    path = Path(getattr(module, "__file__", None) or "")
    return path if path.suffix == ".py" and path.is_file() else None


def _cells(target: Any, seen: set[int]) -> Iterator[Any]:
    """Yield what can change the behaviour of something that no file holds: its code, its constants, what it names."""
    if id(target) in seen:
        return
    seen.add(id(target))
    if isinstance(target, FunctionType):
        yield from (target.__qualname__, repr(target.__defaults__), repr(target.__kwdefaults__))
        yield from _code(target.__code__)
        for name in sorted(_names(target.__code__)):
            yield from _named(target.__globals__.get(name), name, target.__module__, seen)
        for cell in target.__closure__ or ():
            yield from _named(cell.cell_contents, "closure", target.__module__, seen)
    elif isinstance(target, type):
        yield target.__qualname__
        for name, value in sorted(vars(target).items()):
            inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            yield from _named(inner, name, target.__module__, seen)
        for base in target.__bases__:
            yield from _named(base, "base", target.__module__, seen)


def _named(value: Any, name: str, module: str, seen: set[int]) -> Iterator[Any]:
    if isinstance(value, FunctionType | type):
        if value.__module__ == module:
            yield from _cells(value, seen)
    elif isinstance(value, str | int | float | bool | bytes | tuple | frozenset | list | dict | set | None):
        yield [name, repr(value)]


def _code(code: CodeType) -> Iterator[Any]:
    yield code.co_code.hex()
    yield list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield repr(constant)


def _names(code: CodeType) -> set[str]:
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


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
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


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
            damage(target, except_in, is_whole_now=True)
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
    digests = {name: file_digest(folder / name) for name in _file_names(folder, except_in)}
    (folder / SEAL).write_text(json.dumps(digests, ensure_ascii=False, indent=1), encoding="utf-8")


def damage(folder: Path, except_in: str = "", *, is_whole_now: bool = False) -> str:
    """Return the name of a file that is not as `seal` left it (changed, missing, added), "" where all are."""
    stamps: _Stamps = {}
    for name in _file_names(folder, except_in):
        try:
            status = (folder / name).stat()
        except OSError:  # a link that leads nowhere, or a file that went just now
            continue
        stamps[name] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    if is_whole_now:
        _found_whole[folder] = stamps
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
            is_changed = sealed[name] != file_digest(folder / name)
        except OSError:
            is_changed = True
        if is_changed:
            return name
    _found_whole[folder] = stamps
    return ""


def _file_names(folder: Path, except_in: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        if except_in and Path(parent) == folder:
            folders[:] = [name for name in folders if name != except_in]
        yield from (Path(parent, name).relative_to(folder).as_posix() for name in names)


def file_digest(path: Path) -> str:
    """Return the xxh3 of a file's bytes, which tells files that changed, and no forged ones."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()
