"""Where the workbench keeps what it remembers: indexes, vectors, stage results, converted weights."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile

from rag_lab.errors import ConfigError

NAME = ".rag_lab"
_ROOT_MARKS = (NAME, ".git", "pyproject.toml")


def home() -> Path:
    """Return the workbench's folder: `$RAG_LAB_HOME`, else `.rag_lab` in the project around the current folder.

    The project is the nearest folder, from the current one upwards, that has a `.rag_lab`, a `.git` or a
    `pyproject.toml`; so a notebook, which runs in its own folder, shares what the command line remembers. Where there
    is no project it is the current folder. The folder returned may not exist.

    Raises:
        ConfigError: if there is a file in its place.
    """
    given = os.environ.get("RAG_LAB_HOME")
    folder = Path(given).resolve() if given else _project(Path.cwd()) / NAME
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file, where the workbench's folder should be; set RAG_LAB_HOME to a folder.")
    return folder


def usable_home() -> Path:
    """Return `home()`, made where it is not there.

    Raises:
        ConfigError: if nothing can be written there.
    """
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise ConfigError(
            f"Cannot write to {folder}, the workbench's folder: {error.strerror}; set RAG_LAB_HOME to another."
        ) from None


def _project(folder: Path) -> Path:
    around = (place for place in (folder, *folder.parents) if any((place / mark).exists() for mark in _ROOT_MARKS))
    return next(around, folder)
