"""How much of a disk a file or a folder takes."""

from __future__ import annotations

from pathlib import Path


def bytes_on_disk(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder; 0 where nothing is there."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())
