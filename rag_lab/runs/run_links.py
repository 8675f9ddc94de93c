"""Links in a run folder: who made the folder chose where they lead, so none that leads out of it is followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rag_lab.errors import RagLabError


def refuse_links_out(folder: Path) -> None:
    """Refuse a run folder in which a link leads out of it, or something lies that is neither a file nor a folder.

    A run folder may itself be reached by a link, and links within it may lead to each other. One that is not there
    holds none.

    Raises:
        RagLabError: if nothing may be read there, or written.
    """
    inside = folder.resolve()
    for entry in _entries(folder):
        path = Path(entry.path)
        if entry.is_symlink() and not _is_inside(path, inside):
            raise RagLabError(
                f"{path} is a link that leads out of the run, so nothing is read or written there; replace it by what "
                "it leads to, or remove it."
            )
        if not (entry.is_symlink() or entry.is_file() or entry.is_dir()):
            raise RagLabError(f"{path} is neither a file nor a folder, as no run has one; remove it.")


def _entries(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:  # a sweep may be at work there
        for entry in found:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path)


def _is_inside(link: Path, folder: Path) -> bool:
    try:
        return link.resolve().is_relative_to(folder)
    except (OSError, RuntimeError):  # links that lead to each other
        return False
