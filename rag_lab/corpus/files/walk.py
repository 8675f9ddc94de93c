"""Which files lie below a folder, and why a path among them is passed over."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from rag_lab.records import Problem

CORPUS_FOLDER = "corpus"
NO_DOCUMENTS = frozenset({"attributes.yaml", "removed.txt", "questions.jsonl"})  # where the folder is its own corpus
_RUN_FILES = ("plan.json", "variants")  # what a folder of results has, from its first minute on


def rules_folder(corpus_dir: Path) -> Path:
    """Return where attributes.yaml and removed.txt stand: beside the folder `corpus` of a dataset, else in it."""
    return corpus_dir.parent if corpus_dir.name == CORPUS_FOLDER else corpus_dir


def sources_below(folder: Path) -> tuple[list[str], list[Problem]]:
    """Return the paths below `folder`, with forward slashes and sorted, and the folders that cannot be read.

    Hidden files and folders are ignored, as are the results of sweeps and the notes of programs that have a document
    open (`~$report.docx`); links to folders are among the paths and are not followed.
    """
    closed: list[OSError] = []
    found = sorted(_walk(folder, closed))
    return found, [Problem(printable(Path(error.filename)), _unreadable("folder", error.strerror)) for error in closed]


def refusal(path: Path, folder: Path) -> str:
    """Return why a path below `folder` is passed over, "" where it is not."""
    if printable(path) != str(path):
        return "the file's name is not UTF-8: rename it."
    if path.is_symlink() and _leaves(path, folder):
        return "the link leaves the corpus folder and was not followed; copy the file into it."
    if path.is_dir():
        return "links to folders are not followed; copy the folder's files."
    if not path.is_file():
        return "the path is a broken link or no ordinary file; remove it."
    return "" if os.access(path, os.R_OK) else _unreadable("file", os.strerror(errno.EACCES))


def _unreadable(kind: str, reason: str | None) -> str:
    return f"the {kind} cannot be read ({reason}): change its permissions."


def printable(path: Path) -> str:
    """Return the path as text that can be printed and stored, whatever bytes its name is made of."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def _walk(folder: Path, closed: list[OSError]) -> Iterator[str]:
    """Yield the paths below `folder`; the errors of folders that cannot be read are added to `closed`."""
    for parent, folders, names in os.walk(folder, onerror=closed.append):
        folders[:] = [name for name in folders if not _is_ignored(name) and not _is_run(Path(parent, name))]
        links = [name for name in folders if Path(parent, name).is_symlink()]
        for name in names + links:
            if not _is_ignored(name):
                yield Path(parent, name).relative_to(folder).as_posix()


def _is_ignored(name: str) -> bool:
    return name.startswith((".", "~$"))


def _is_run(folder: Path) -> bool:
    return all((folder / name).exists() for name in _RUN_FILES)


def _leaves(link: Path, folder: Path) -> bool:
    """Tell whether a link leads out of the folder; one that leads to itself leads nowhere."""
    try:
        return not link.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        return False
