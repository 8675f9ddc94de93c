"""Building an index: load, split, embed, write. It appears under its name whole, or not at all."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rag_lab.config import CorpusConfig, digest
from rag_lab.corpus.chunk_store import write_chunks
from rag_lab.corpus.folder import load_folder
from rag_lab.corpus.split import split
from rag_lab.errors import DatasetError
from rag_lab.models.base import Embedder
from rag_lab.stores.chroma import ChromaStore

MANIFEST = "index.json"
CHUNKS = "chunks.sqlite"
VECTORS = "chroma"

_FORMAT = 1  # raised when loading, splitting or the files of an index change
_LIBRARIES = ("pymupdf", "langchain-text-splitters", "charset-normalizer", "chromadb")


def made_of(digests: Mapping[str, str], config: CorpusConfig, embedder: Embedder) -> dict[str, Any]:
    """Return whatever can change an index: files, parameters, model, and the libraries that read and cut text."""
    return {
        "format": _FORMAT,
        "files": dict(digests),
        "corpus": config.model_dump(),
        "embedder": dict(embedder.identity()),
        "libraries": {name: version(name) for name in _LIBRARIES},
    }


def index_path(parts: Mapping[str, Any], home: Path) -> Path:
    """Return the folder of the index that `parts` (of `made_of`) make; it may not be there."""
    return home / "indexes" / digest(parts)


def ensure_index(
    folder: Path, digests: Mapping[str, str], config: CorpusConfig, embedder: Embedder, home: Path
) -> Path:
    """Return the folder of the index of the corpus `folder`, building it first where it is not there.

    Raises:
        DatasetError: if no file can be used, or a file changed while it was read.
        ModelError: if the embedder cannot be used.
    """
    parts = made_of(digests, config, embedder)
    target = index_path(parts, home)
    if (target / MANIFEST).exists():
        return target
    with _building(target) as partial:
        if partial:
            _build(partial, folder, digests, config, embedder, parts)
    return target


@contextmanager
def _building(target: Path) -> Iterator[Path | None]:
    """Give a fresh folder that becomes `target` at the end; None where another process has built it meanwhile."""
    from filelock import FileLock

    target.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{target}.lock"):
        if (target / MANIFEST).exists():
            yield None
            return
        for leftover in target.parent.glob(f"{target.name}.partial-*"):  # of a process that was killed
            shutil.rmtree(leftover)
        partial = target.parent / f"{target.name}.partial-{uuid.uuid4().hex}"
        partial.mkdir()
        try:
            yield partial
            partial.replace(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _build(
    partial: Path,
    folder: Path,
    digests: Mapping[str, str],
    config: CorpusConfig,
    embedder: Embedder,
    parts: Mapping[str, Any],
) -> None:
    corpus = load_folder(folder)
    if corpus.digests != digests:
        raise DatasetError(f"Files of {folder} changed while they were read; run again once they rest.")
    chunks = split(corpus.documents, config)
    vectors = embedder.embed_documents([child.text for child in chunks.children])
    write_chunks(partial / CHUNKS, corpus.documents, chunks)
    ChromaStore.build(partial / VECTORS, [child.chunk_id for child in chunks.children], vectors)
    manifest = {
        "n_files": len(digests),
        "n_documents": len(corpus.documents),
        "n_parents": len(chunks.parents),
        "n_children": len(chunks.children),
        "problems": [
            {"source": source, "reason": problem.reason}
            for problem in corpus.problems
            if (source := Path(problem.path).relative_to(folder).as_posix()) in digests
        ],
        "made_of": parts,
    }
    (partial / MANIFEST).write_text(json.dumps(manifest, ensure_ascii=False, indent=1), encoding="utf-8")
