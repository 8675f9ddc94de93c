"""Where the workbench keeps what it remembers: indexes, vectors, stage results, converted weights."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile

from rag_lab.errors import ConfigError

NAME = ".rag_lab"
VARIABLE = "RAG_LAB_HOME"
_ROOT_MARKS = (NAME, ".git", "pyproject.toml")


def home() -> Path:
    """Return the workbench's folder: `$RAG_LAB_HOME`, else `.rag_lab` in the project around the current folder.

    The project is the nearest folder, from the current one upwards, that has a `.rag_lab`, a `.git` or a
    `pyproject.toml`; so a notebook, which runs in its own folder, shares what the command line remembers. Below the
    checkout that the package is installed from, and where there is no project, it is that checkout, so that a notebook
    of its own that is run from elsewhere remembers in one place. Without a checkout it is the current folder. The
    folder returned may not exist.

    Raises:
        ConfigError: if there is a file in its place.
    """
    given = os.environ.get(VARIABLE)
    folder = Path(given).resolve() if given else _project(Path.cwd()) / NAME
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file, where the workbench's folder should be; set RAG_LAB_HOME to a folder.")
    return folder


def usable_home() -> Path:
    """Return `home()`, made where it is not there; which one that is, is said once, unless the environment names it.

    Raises:
        ConfigError: if nothing can be written there.
    """
    folder = home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(
            f"Cannot write to {folder}, the workbench's folder: {error.strerror}; set RAG_LAB_HOME to another."
        ) from None
    if not os.environ.get(VARIABLE):
        _say(folder)
    return folder


@cache  # once a process
def _say(folder: Path) -> None:
    """Say it on stderr; below the cell of a notebook, where that looks like an error, on stdout."""
    stream = sys.stdout if "ipykernel" in sys.modules else sys.stderr
    print(f"What is computed is remembered in {folder} ({VARIABLE} names another folder).", file=stream)


def _project(folder: Path) -> Path:
    upwards, checkout = (folder, *folder.parents), _checkout()
    if checkout in upwards:
        inside = upwards[: upwards.index(checkout)]
        return next((place for place in inside if (place / NAME).is_dir()), checkout)
    around = (place for place in upwards if any((place / mark).exists() for mark in _ROOT_MARKS))
    return next(around, checkout or folder)


def _checkout() -> Path | None:
    """Return the checkout that the package is installed from, or None where it was installed without one."""
    folder = Path(__file__).resolve().parents[2]
    return folder if (folder / "pyproject.toml").is_file() else None
