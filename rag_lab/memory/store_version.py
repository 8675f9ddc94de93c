"""The version of the tables of a store: one that a later workbench wrote is refused, not guessed at."""

from __future__ import annotations

from rag_lab.errors import RagLabError

VERSION = 1


def refuse_newer(version: int, place: object) -> None:
    """Raise an error where a store was written by a later version of the workbench."""
    if version > VERSION:
        raise RagLabError(
            f"{place} is a store of version {version}, and this workbench reads up to version {VERSION}: install the "
            "newer workbench, or name another folder by RAG_LAB_HOME or another database by RAG_LAB_STORE."
        )
