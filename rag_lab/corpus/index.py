"""A corpus made searchable: opened where it was built before, built where it was not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rag_lab.config import CorpusConfig
from rag_lab.corpus.build import CHUNKS, MANIFEST, VECTORS, ensure_index, index_path, made_of
from rag_lab.corpus.chunk_store import ChunkStore
from rag_lab.corpus.digests import file_digests
from rag_lab.corpus.folder import list_files
from rag_lab.corpus.locate import locate_evidence
from rag_lab.models.base import Embedder, Vectors
from rag_lab.models.remembered_embedder import RememberedEmbedder
from rag_lab.records import Chunk, Evidence, Hit, Problem, Question
from rag_lab.stores.chroma import ChromaStore

_CHILDREN_PER_PARENT = 4  # first guess of how many children must be searched for one more parent


class CorpusIndex:
    """The parents and children of one corpus, and their vectors; read only. Everything opens on first use."""

    def __init__(self, path: Path, corpus_dir: Path, passed_over: tuple[Problem, ...] = ()) -> None:
        self.path = path
        self.corpus_dir = corpus_dir
        self._passed_over = passed_over  # files that no loader was tried on
        self._chunks = ChunkStore(path / CHUNKS)
        self._vectors = ChromaStore.open(path / VECTORS)

    @property
    def digest(self) -> str:
        """Identity of all that makes the index: files, split parameters, embedder, text libraries."""
        return self.path.name

    @property
    def is_built(self) -> bool:
        """Whether the index is on disk; one that is not can only tell its digest."""
        return (self.path / MANIFEST).exists()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was left out of the corpus or guessed while it was read."""
        read = self._manifest["problems"]
        return self._passed_over + tuple(Problem(str(self.corpus_dir / bad["source"]), bad["reason"]) for bad in read)

    @property
    def n_files(self) -> int:
        """Number of files with a suffix that is read, bad ones included."""
        return int(self._manifest["n_files"])

    @property
    def n_documents(self) -> int:
        """Number of documents: pages of paged files, and files without pages."""
        return int(self._manifest["n_documents"])

    @property
    def n_parents(self) -> int:
        """Number of parents."""
        return int(self._manifest["n_parents"])

    @property
    def n_children(self) -> int:
        """Number of children, each with one vector."""
        return int(self._manifest["n_children"])

    def search(self, vectors: Vectors, k: int) -> list[list[Hit]]:
        """Return the k parents whose best child is nearest to each row of `vectors`, (n_queries, dim), best first.

        Fewer only where the corpus has fewer parents. A hit's score is the cosine of its best child; ties go to the
        child that comes first in the corpus. `Hit.scores` is empty: the caller names the step.
        """
        hits: list[list[Hit]] = [[] for _ in vectors]
        pending = list(range(len(vectors)))
        fan_out = min(k * _CHILDREN_PER_PARENT, self.n_children)
        while pending:
            found = zip(pending, *self._vectors.search(vectors[pending], fan_out), strict=True)
            for row, ids, cosines in found:
                hits[row] = self._best_parents(ids, cosines, k)
            exhausted = fan_out == self.n_children
            pending = [row for row in pending if len(hits[row]) < k and not exhausted]
            fan_out = min(fan_out * 4, self.n_children)
        return hits

    def parent(self, parent_id: str) -> Chunk:
        """Return a parent with its text; KeyError if there is none of that id."""
        return self._chunks.parent(parent_id)

    def child(self, chunk_id: str) -> Chunk:
        """Return a child with its text; KeyError if there is none of that id."""
        return self._chunks.child(chunk_id)

    def locate(self, evidence: Evidence) -> Evidence:
        """Return the evidence with page, span and context filled where it can be found, else as it was."""
        return self.try_locate(evidence)[0]

    def try_locate(self, evidence: Evidence) -> tuple[Evidence, str]:
        """Return what `locate` does, and why the evidence was not found ("" where it was)."""
        return locate_evidence(self._chunks, evidence)

    def _best_parents(self, ids: Sequence[str], cosines: Sequence[float], k: int) -> list[Hit]:
        best: dict[str, Hit] = {}
        for chunk_id, cosine in zip(ids, cosines, strict=True):
            parent_id = chunk_id.rpartition("/")[0]
            if parent_id not in best:
                best[parent_id] = Hit(parent_id, chunk_id, *self._spans[parent_id], score=cosine)
            if len(best) == k:
                break
        return list(best.values())

    @cached_property
    def _spans(self) -> dict[str, tuple[str, int | None, int, int]]:
        return self._chunks.spans()

    @cached_property
    def _manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
        return manifest


def open_index(
    corpus_dir: Path, config: CorpusConfig, embedder: Embedder, *, home: Path, progress: bool = False
) -> CorpusIndex:
    """Open the index of a corpus folder below `home`, building it where it is missing.

    An unchanged corpus is neither loaded nor embedded again; after a change, only texts never seen are embedded.

    Raises:
        DatasetError: if the folder is missing or no file in it can be used.
        ModelError: if the embedder cannot be used.
    """
    listing = list_files(corpus_dir)
    digests = file_digests(listing.files, home / "file_digests.sqlite")
    remembered = _remembering(embedder, home, progress)
    path = ensure_index(corpus_dir, digests, config, remembered, home)
    return CorpusIndex(path, corpus_dir, listing.problems)


def name_index(corpus_dir: Path, config: CorpusConfig, embedder: Embedder, *, home: Path) -> CorpusIndex:
    """Return the index that `open_index` would open, without building it; `is_built` tells whether it is there.

    Raises:
        DatasetError: if the folder is missing or no file in it can be used.
    """
    listing = list_files(corpus_dir)
    digests = file_digests(listing.files, home / "file_digests.sqlite")
    return CorpusIndex(index_path(made_of(digests, config, embedder), home), corpus_dir, listing.problems)


def locate_all(index: CorpusIndex, questions: Sequence[Question]) -> tuple[list[Question], list[Problem]]:
    """Return the questions with their evidence located, and a problem for each piece of evidence that was not found."""
    located, problems = [], []
    for question in questions:
        found = [index.try_locate(evidence) for evidence in question.evidence]
        located.append(replace(question, evidence=tuple(evidence for evidence, _ in found)))
        problems += [
            Problem(str(index.corpus_dir / evidence.source), f"evidence of question {question.question_id!r}: {reason}")
            for evidence, reason in found
            if reason
        ]
    return located, problems


def _remembering(embedder: Embedder, home: Path, progress: bool) -> RememberedEmbedder:
    if isinstance(embedder, RememberedEmbedder):
        return replace(embedder, progress=progress)
    return RememberedEmbedder(embedder, home / "vectors.sqlite", progress)
