"""The vectors of an index's children: beside its chunks, for each embedding model and store, built when first searched.

An index that is searched by words alone has none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab._kit.whole_folder import whole_folder
from rag_lab.access import access_label
from rag_lab.models.remembered_embeddings import RememberedEmbedder
from rag_lab.records import Chunk
from rag_lab.stores import registry
from rag_lab.stores.config import StoreConfig
from rag_lab.stores.engine import SearchedRows

_TOOK = "took.json"  # beside the vectors
_FORMAT = 1  # raised when what is embedded of a child changes


@dataclass(frozen=True)
class ChildVectors:
    """How children become vectors, and which store holds them."""

    embedder: RememberedEmbedder
    store: StoreConfig
    given: Any = None  # an object in place of the store that is named

    def identity(self) -> Mapping[str, Any]:
        """Return whatever can change what a search in them finds, beside the children."""
        return {
            "format": _FORMAT,
            "embedder": dict(self.embedder.identity()),
            "store": registry.identity(self.store, self.given),
        }

    def folder(self, searched: Path) -> Path:
        """Return where they lie below the folder `searched`; they may not be there."""
        return searched / f"vectors-{digest(self.identity())[:32]}"

    def ensure(self, searched: Path, children: Sequence[Chunk]) -> None:
        """Build the vectors below `searched`, where they are missing or damaged.

        Processes that want them at once build them once.

        Raises:
            ModelError: if the embedding model cannot be used.
            StoreError: if the store cannot be used.
        """
        with whole_folder(self.folder(searched)) as partial:
            if not partial:
                return
            before = self._seconds()
            vectors = self.embedder.embed_documents([child.text for child in children])
            took = self._seconds() - before
            labels = [access_label(child.namespace, child.permissions) for child in children]
            ids = [child.chunk_id for child in children]
            registry.stores_of(self.store, self.given).build(partial, ids, vectors, labels, self.store.url)
            (partial / _TOOK).write_text(json.dumps({"seconds": took}), encoding="utf-8")

    def took_s(self, searched: Path) -> float | None:
        """Return the seconds that embedding took, of each text as first computed; None where that was not kept."""
        path = self.folder(searched) / _TOOK
        return float(json.loads(path.read_bytes())["seconds"]) if path.is_file() else None

    def _seconds(self) -> float:
        return self.embedder.replayed.seconds + self.embedder.embedded.seconds

    def open(self, searched: Path) -> SearchedRows:
        """Return the store that `ensure` built."""
        return registry.stores_of(self.store, self.given).open(self.folder(searched))

    def known(self, children: Sequence[Chunk]) -> dict[str, str | None]:
        """Return a key for each different text of these children, with the text, None where it was embedded before."""
        return self.embedder.known_documents([child.text for child in children])
