"""What a loader is: a function from one file to documents, with what it could not use said in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rag_lab.errors import RagLabError
from rag_lab.records import Document


class LoadError(RagLabError):
    """A file that cannot be used at all; the message is what is wrong and what to do, without the path."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The documents of one file, in page order, and what was left out or guessed while reading it."""

    documents: tuple[Document, ...]
    warnings: tuple[str, ...] = ()


Loader = Callable[[Path, str], Loaded]  # (file, source) -> documents; raises LoadError
