"""Searches by texts as a model encodes them in more than a vector each: `late`, by tokens; `splade`, by words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from rag_lab._kit.digest import digest, whole_folder
from rag_lab._kit.observability import span
from rag_lab.access import Labels
from rag_lab.corpus.build_index import SEARCHED
from rag_lab.corpus.chunk_store import best_units
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.errors import ModelError
from rag_lab.records import Hit, Level
from rag_lab.stages.retrieval.search import by_access
from rag_lab.stages.stage import fields_of
from rag_lab.stores.encoded import ENCODED, FORMAT, EncodedIndex, EncodedName

ROLES: Mapping[EncodedName, str] = {"late": "late_interaction", "splade": "sparse"}  # of the model that encodes
_WORDS = 12  # of a question, that are shown
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
        method = ENCODED[self.name].method
        if not hasattr(self.model, method):
            sentence = f"retrieval.mode {self.name} needs a model with the method {method}"
            raise ModelError(f"{sentence}, and {self.model!r} has none.")
        made_of = digest({"format": FORMAT, "model": dict(self.model.identity()), **self.index.contexts.identity()})
        return self.index.path / SEARCHED / f"{self.name}-{made_of[:32]}"

    def opened(self) -> EncodedIndex:
        """Return the index of the children, built where it is missing, once for a process."""
        if self.index.contexts.model is not None:
            self.index.searched_children()  # only then it is known which sentences of context are for now
        folder, known = self.folder(), _OPEN.setdefault(self.index, {})
        if folder not in known:
            with whole_folder(folder) as partial:  # processes that want it at the same time build it once
                if partial:
                    ENCODED[self.name].write(partial, self.model, self.index.searched_children())
            known[folder] = ENCODED[self.name](folder, self.model)
        return known[folder]

    def search(self, texts: Sequence[str], k: int, allowed: Sequence[Labels | None]) -> list[list[Hit]]:
        """Return the k units whose best child scores highest for each text."""
        encoded = self.opened()
        with span(f"search {self.name}", {"rag_lab.queries": len(texts), "rag_lab.k": k}):
            return by_access(
                lambda rows, labels: best_units(
                    self.index.chunks,
                    self.level,
                    encoded.find([texts[row] for row in rows], labels),
                    len(rows),
                    k,
                    self.name,
                ),
                allowed,
            )

    def explain(self, text: str) -> str:
        """Return the words by which a text was searched, the weightiest first; '' where it was not by words."""
        if self.name != "splade" or not hasattr(self.model, "words"):
            return ""
        words = self.model.words(self.model.term_weights("query", [text]))[:_WORDS]
        return f"searched by {', '.join(f'{word} {weight:.1f}' for word, weight in words)}" if words else ""
