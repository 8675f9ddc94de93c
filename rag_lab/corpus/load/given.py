"""Documents that were handed over in Python, as a file a source: the source on its first line, then a document a line.

Such a file is written below the home folder and read as every other file is, so that an index knows no other way in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rag_lab.corpus.load.loader import Loaded, LoadError
from rag_lab.records import Document

SUFFIX = ".documents"


def write_given(path: Path, documents: Sequence[Document]) -> None:
    """Write the documents of one source, in page order."""
    lines = [documents[0].source, *([item.page, item.text, item.title] for item in documents)]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8", newline="\n")


def given_source(path: Path) -> str:
    """Return the source that the file at `path` holds; '' where it tells none."""
    try:
        with path.open(encoding="utf-8") as file:
            source = json.loads(file.readline())
    except (OSError, ValueError):
        return ""
    return source if isinstance(source, str) else ""


def load_given(path: Path, source: str) -> Loaded:
    """Read what `write_given` wrote.

    Raises:
        LoadError: if the file is something else.
    """
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
