"""Building an index: read, split, write. It appears under its name whole, or not at all; searches add their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab._kit.whole_file import whole_folder
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.files.folder import Listing
from rag_lab.corpus.files.reading import Reading
from rag_lab.corpus.index.chunk_store import write_chunks
from rag_lab.corpus.index.locate import AsRead
from rag_lab.corpus.index.read_and_split import Processed, process
from rag_lab.corpus.split.chunks import cut_identity
from rag_lab.corpus.split.splitter import Splitter
from rag_lab.memory.results import Memory

MANIFEST = "index.json"
CHUNKS = "chunks.sqlite"
SEARCHED = "searched"  # vectors and sparse indexes of the children, each whole by itself

FOR_NOW = "for_now"  # what was wrong with the files of an index that another attempt may make whole
_FORMAT = 6  # raised when the files of an index change
_LIBRARIES = ("langchain-text-splitters",)


@dataclass(frozen=True, kw_only=True)
class Manifest(AsRead):
    """What is known of an index without opening it."""

    n_files: int  # with a suffix that is read, bad ones included
    n_documents: int  # pages of paged files, and files without pages
    n_parents: int
    n_children: int
    problems: tuple[tuple[str, str], ...]  # source and reason: what was left out or guessed while it was read
    made_of: dict[str, Any]  # see `made_of`


@dataclass(frozen=True)
class Recipe:
    """How files become an index."""

    config: CorpusConfig
    reading: Reading
    splitter: Splitter

    def identity(self) -> dict[str, Any]:
        """Return whatever can change an index beside its files."""
        found = {
            "format": _FORMAT,
            "reading": dict(self.reading.identity()),
            "cut": dict(cut_identity(self.config, self.splitter)),
            "libraries": {name: version(name) for name in _LIBRARIES},
        }
        return found if self.config.duplicates == "keep" else {**found, "duplicates": self.config.duplicates}


def index_path(parts: Mapping[str, Any], home: Path) -> Path:
    """Return the folder of the index that `parts` (of `made_of`) make; it may not be there."""
    return home / "indexes" / digest(parts)


def made_of(listing: Listing, digests: Mapping[str, str], recipe: Recipe) -> dict[str, Any]:
    """Return whatever can change an index: files, whose they are, and the recipe."""
    attributes = {source: asdict(item) for source, item in listing.attributes.items() if source in digests}
    return {"files": dict(digests), "attributes": attributes, **recipe.identity()}


def ensure_index(listing: Listing, digests: Mapping[str, str], recipe: Recipe, home: Path) -> Path:
    """Return the folder of the index of the files of `listing`, building it first where it is not there, or damaged.

    Where another attempt may read more of a file, the folder is one for now: the next call reads those files again.
    """
    parts = made_of(listing, digests, recipe)

    def read() -> Processed:
        memory = Memory(home / "files.sqlite")
        return process(listing, digests, recipe.reading, recipe.config, recipe.splitter, memory)

    try:
        return _ensure(read, lasting=True, parts=parts, home=home)
    except _NotLasting as found:
        processed = found.processed
    # Another index, so that no result of it is taken for one of the whole.
    parts[FOR_NOW] = processed.problems
    return _ensure(lambda: processed, lasting=False, parts=parts, home=home)


class _NotLasting(Exception):  # noqa: N818
    """Another attempt may read more of some files."""

    def __init__(self, processed: Processed) -> None:
        super().__init__()
        self.processed = processed


def _ensure(read: Callable[[], Processed], *, lasting: bool, parts: Mapping[str, Any], home: Path) -> Path:
    """Return the folder of the index of `parts`, building it where it is not there of what `read` returns."""
    target = index_path(parts, home)
    with whole_folder(target, except_in=SEARCHED) as partial:
        if partial:
            processed = read()
            if lasting and processed.curable:
                raise _NotLasting(processed)
            partial.mkdir()
            write_chunks(partial / CHUNKS, processed.documents, processed.chunks)
            manifest = Manifest(
                n_files=len(parts["files"]),
                n_documents=len(processed.documents),
                n_parents=len(processed.chunks.parents),
                n_children=len(processed.chunks.children),
                problems=processed.problems,
                made_of=dict(parts),
                page_starts=processed.as_read.page_starts,
                left_out=processed.as_read.left_out,
            )
            text = json.dumps(asdict(manifest), ensure_ascii=False, indent=1)
            (partial / MANIFEST).write_text(text, encoding="utf-8")
    return target
