"""Searches by texts as a model encodes them in more than a vector each: `late`, by the vectors of their tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from rag_lab._kit.machine import bytes_on_disk
from rag_lab._kit.observability import span
from rag_lab.access import Labels
from rag_lab.corpus.build_index import SEARCHED
from rag_lab.corpus.chunk_store import best_units
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.records import Chunk, Hit, Level
from rag_lab.stages.retrieval.search import Rows, by_access
from rag_lab.stages.stage import Stage, fields_of
from rag_lab.stores.encoded import EncodedIndex, EncodedName, encoded_folder, open_encoded

ROLES: Mapping[EncodedName, str] = {"late": "late_interaction"}  # of the model that encodes
_OPEN: WeakKeyDictionary[CorpusIndex, dict[Path, EncodedIndex]] = WeakKeyDictionary()


@dataclass(frozen=True)
class EncodedSearcher:
    """Search by what `model` makes of the question and of each child; the index of it is built when first asked for."""

    index: CorpusIndex
    name: EncodedName
    model: Any
    level: Level = "parent"

    def identity(self) -> Mapping[str, Any]:
        """Index, what stands before its children, level, and the method with its model."""
        return {**fields_of(self), "context": self.index.contexts.identity()}

    def folder(self) -> Path:
        """Return where the encoded children lie; they may not be there."""
        context = self.index.contexts.identity()
        return encoded_folder(self.index.path / SEARCHED, self.name, self.model, context)

    def opened(self) -> EncodedIndex:
        """Return the index of the children, built where it is missing, once for a process."""
        if self.index.contexts.model is not None:
            self._searched()  # only then it is known which sentences of context are for now
        folder, known = self.folder(), _OPEN.setdefault(self.index, {})
        if folder not in known:
            known[folder] = open_encoded(folder, self.name, self.model, self._searched)
        return known[folder]

    def search(self, texts: Sequence[str], k: int, allowed: Sequence[Labels | None]) -> list[list[Hit]]:
        """Return the k units whose best child scores highest for each text."""
        encoded = self.opened()

        def search(rows: Rows, labels: Labels | None) -> list[list[Hit]]:
            with span(f"search {self.name}", {"rag_lab.queries": len(rows), "rag_lab.k": k}):
                find = encoded.find([texts[row] for row in rows], labels)
                return best_units(self.index.chunks, self.level, find, len(rows), k, self.name)

        return by_access(search, allowed)

    def _searched(self) -> list[Chunk]:
        children = self.index.chunks.children()
        texts = self.index.searched_texts(children)
        return [replace(child, text=text) for child, text in zip(children, texts, strict=True)]


def encoded_bytes(stages: Sequence[Stage]) -> int:
    """Return what the encoded texts that these stages search take on disk."""
    searchers = (getattr(stage, "searcher", None) for stage in stages)
    return sum(bytes_on_disk(one.folder()) for one in searchers if isinstance(one, EncodedSearcher))
