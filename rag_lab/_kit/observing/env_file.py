"""Keys and settings in a file named .env, put into the environment where it does not name them already.

That of the working folder goes first, then that of the project: the nearest folder above with a .git, a pyproject.toml
or a .rag_lab.
"""

from __future__ import annotations

import os
from pathlib import Path

from rag_lab.errors import ConfigError

NAME = ".env"
_OF_PROJECT = (".git", "pyproject.toml", ".rag_lab")
_read: dict[Path, tuple[str, ...]] = {}


def read_env_files(folder: Path | None = None) -> None:
    """Read the files of `folder`, the working folder where None, and of its project.

    What the environment names stays as it is, and is what everything started from here inherits.

    Raises:
        ConfigError: if a file is there and cannot be read.
    """
    _read.clear()
    for path in _files(folder or Path.cwd()):
        new = {name: value for name, value in _values(path).items() if name not in os.environ}
        os.environ.update(new)
        _read[path] = tuple(sorted(new))


def env_files_read() -> dict[Path, tuple[str, ...]]:
    """Return the files that this process has read, each with the names that it took from it; values are not kept."""
    return dict(_read)


def _files(folder: Path) -> list[Path]:
    above = (place for place in (folder, *folder.parents) if any((place / name).exists() for name in _OF_PROJECT))
    places = dict.fromkeys([folder, *([project] if (project := next(above, None)) else [])])
    return [path for place in places if (path := place / NAME).is_file()]


def _values(path: Path) -> dict[str, str]:
    from dotenv import dotenv_values

    try:
        return {name: value for name, value in dotenv_values(path).items() if value is not None}
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ConfigError(f"Cannot read {path}: {why}; write NAME=value lines into it, or move it away.") from None
