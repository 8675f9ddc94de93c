"""Digests of weights, so that a model's identity follows its content and not its name.

A file up to 1 GB is hashed whole; a larger one by its size and its first and last MiB, marked `partial`. Results are
remembered in the home folder by path, size and time of change, so that a process does not hash 100 MB to start.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from rag_lab._kit.home import home_at_work
from rag_lab._kit.whole_file import whole_file

_WHOLE_BYTES = 1_000_000_000
_MIB = 1 << 20
_SUFFIXES = {".json", ".txt", ".model", ".safetensors", ".bin", ".jinja", ".gguf", ".py"}


def file_digest(path: Path) -> str:
    """Return `sha256:…` of a file, or `partial-sha256:…` of a file over 1 GB."""
    stat = path.stat()
    stamp = [stat.st_size, stat.st_mtime_ns]
    note = _note(path)
    remembered = _read(note)
    if remembered.get("stamp") == stamp and isinstance(remembered.get("digest"), str):
        return str(remembered["digest"])
    digest = _whole(path) if stat.st_size <= _WHOLE_BYTES else f"partial-sha256:{_ends(path, stat.st_size)}"
    _write(note, {"stamp": stamp, "digest": digest})
    return digest


def folder_digest(folder: Path) -> str:
    """Return `folder-sha256:…` over names, sizes and small files' content, and the ends of files over 1 MiB."""
    stats = [(path, path.stat()) for path in _files(folder)]
    return _of_folder(folder, tuple((path, stat.st_size, stat.st_mtime_ns) for path, stat in stats))


@lru_cache(64)  # a process asks for each stage
def _of_folder(folder: Path, files: tuple[tuple[Path, int, int], ...]) -> str:
    total = hashlib.sha256()
    for path, size, _ in files:
        content = _ends(path, size) if size > _MIB else hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(folder).as_posix()}\0{size}\0{content}\n".encode())
    return f"folder-sha256:{total.hexdigest()}"


def _files(folder: Path) -> Iterator[Path]:
    return iter(sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file()))


def _whole(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _ends(path: Path, size: int) -> str:
    with path.open("rb") as file:
        first = file.read(_MIB)
        file.seek(max(0, size - _MIB))
        return hashlib.sha256(f"{size}\0".encode() + first + file.read(_MIB)).hexdigest()


def _note(path: Path) -> Path:
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:32]
    return home_at_work() / "weights" / "digests" / f"{name}.json"


def _read(note: Path) -> dict[str, object]:
    try:
        content = json.loads(note.read_bytes())
    except (OSError, ValueError):
        return {}  # not remembered, or a note cut short: the digest is computed again
    return content if isinstance(content, dict) else {}


def _write(note: Path, content: dict[str, object]) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(note) as partial:
        partial.write_text(json.dumps(content), encoding="utf-8")
