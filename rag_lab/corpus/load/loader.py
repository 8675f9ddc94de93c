"""What a loader is: a function from one file to documents, with what it could not use said in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_lab.errors import RagLabError
from rag_lab.records import Document

MAX_FILE_BYTES = 512 * 2**20  # of any file; what is larger is no document
MAX_FILE_CHARS = 10_000_000  # of the text of one file: some 5,000 pages


class LoadError(RagLabError):
    """A file that cannot be used at all; the message is what is wrong and what to do, without the path.

    `lasting` is False where another attempt may succeed with the same file, so that the failure must not be remembered.
    """

    def __init__(self, message: str, lasting: bool = True) -> None:
        super().__init__(message)
        self.lasting = lasting


@dataclass(frozen=True, slots=True)
class Loaded:
    """The documents of one file, in page order, and what was left out or guessed while reading it."""

    documents: tuple[Document, ...]
    warnings: tuple[str, ...] = ()
    lasting: bool = True  # False where another attempt may read more, so that the result must not be remembered


def loaded_json(found: Loaded) -> dict[str, Any]:
    """Return what was read, as JSON; whose it is stands elsewhere, as do `lasting` and the source."""
    documents = [[item.page, item.text, item.title, item.section] for item in found.documents]
    return {"documents": documents, "warnings": found.warnings}


def loaded_from(data: Mapping[str, Any], source: str = "") -> Loaded:
    """Return what `loaded_json` made JSON of."""
    rows = data["documents"]
    documents = (Document(source, page, text, title, section=section) for page, text, title, section in rows)
    return Loaded(tuple(documents), tuple(data["warnings"]))


Loader = Callable[[Path, str], Loaded]  # (file, source) -> documents; raises LoadError


@contextmanager
def parsing(kind: str) -> Iterator[None]:
    """Turn whatever a parser of untrusted files raises into a `LoadError`; `kind` is what the file should be.

    Parsers meet damage in any of their lines, so the exceptions that they raise on it cannot be listed.
    """
    try:
        yield
    except (RagLabError, OSError, MemoryError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise LoadError(f"the {kind} is damaged ({type(error).__name__}: {reason}); replace or remove it.") from error
