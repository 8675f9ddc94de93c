"""What a loader is: a function from one file to documents, with what it could not use as sentences.

Documents that come from Python are written below the home folder, a file a source (the source on the first line, then
a document a line), and read as every other file is, so that an index knows no other way in.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_lab.errors import RagLabError
from rag_lab.records import Document

MAX_FILE_BYTES = 512 * 2**20  # of any file; what is larger is no document
MAX_FILE_CHARS = 10_000_000  # of the text of one file: some 5,000 pages
SUFFIX = ".documents"


class LoadError(RagLabError):
    """A file that cannot be used at all; the message is what is wrong and what to do, without the path.

    `lasting` is False where another attempt may succeed with the same file: the failure must not be remembered.
    """

    def __init__(self, message: str, lasting: bool = True) -> None:
        super().__init__(message)
        self.warnings = (message,)
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


def write_documents(path: Path, documents: Sequence[Document]) -> None:
    """Write the documents of one source, in page order."""
    lines = [documents[0].source, *([item.page, item.text, item.title] for item in documents)]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8", newline="\n")


def source_in(path: Path) -> str:
    """Return the source that the file at `path` holds; '' where it tells none."""
    try:
        with path.open(encoding="utf-8") as file:
            source = json.loads(file.readline())
    except (OSError, ValueError):
        return ""
    return source if isinstance(source, str) else ""


def load_documents(path: Path, source: str) -> Loaded:
    """Read what `write_documents` wrote."""
    documents = []
    for line in path.read_text(encoding="utf-8").split("\n")[1:-1]:
        match json.loads(line):
            case [int() | None as page, str(text), str(title)]:
                documents.append(Document(source, page, text, title))
            case _:
                raise LoadError("the file holds no documents that were given in Python; remove it.")
    if not documents:
        raise LoadError("the file is empty; remove it.")
    return Loaded(tuple(documents))
