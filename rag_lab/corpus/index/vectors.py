"""The vectors of an index's children, for each embedding model and store, built when first searched; and truncation.

The vector of a child that is longer than the model reads stands for its beginning; what follows is not searched. How
much that is, is counted once and kept with the vectors. An index that is searched by words alone has no vectors.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rag_lab._kit.digest import digest, whole_folder
from rag_lab.access import access_label
from rag_lab.models.remembered_vectors import RememberedEmbedder
from rag_lab.models.truncation import Truncation
from rag_lab.records import Chunk, Hit
from rag_lab.stores import registry
from rag_lab.stores.config import StoreConfig
from rag_lab.stores.engine import SearchedRows

_FORMAT = 1  # raised when what is counted changes
_FILE = "unread.json"
TOOK = "took.json"  # with the vectors: the seconds that embedding took, of each text as first computed
_VECTORS_FORMAT = 1  # raised when what is embedded of a child changes


@dataclass(frozen=True, slots=True)
class TruncatedChildren:
    """How long children are for one embedding model, and the tokens beyond its limit by the id of each longer one."""

    total: Truncation
    longer: Mapping[str, int] = field(default_factory=dict)

    def of_hits(self, hits: Iterable[Hit]) -> list[int]:
        """Return how many tokens of each hit's child were never embedded."""
        return [self.longer.get(hit.chunk_id, 0) for hit in hits]


def truncated_children(
    embedder: RememberedEmbedder, searched: Path, children: Callable[[], Sequence[Chunk]]
) -> TruncatedChildren | None:
    """Return what `embedder` never reads of `children`; None where it does not say how much it reads.

    No weights are loaded. What was counted is kept below `searched`, the folder of what the index is searched by.
    """
    limit = embedder.most_tokens
    if limit is None:
        return None
    folder = searched / f"unread-{digest({'format': _FORMAT, 'embedder': dict(embedder.identity())})[:32]}"
    with whole_folder(folder) as partial:
        if partial:
            partial.mkdir()
            texts = {child.chunk_id: child.text for child in children()}
            counts = embedder.text_tokens(list(texts.values()), "document")
            longer = {chunk_id: n - limit for chunk_id, n in zip(texts, counts, strict=True) if n > limit}
            total = Truncation.of(counts, sum(map(len, texts.values())), limit)
            found = asdict(TruncatedChildren(total, longer))
            (partial / _FILE).write_text(json.dumps(found), encoding="utf-8")
    saved = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    return TruncatedChildren(Truncation(**saved["total"]), saved["longer"])


@dataclass(frozen=True)
class ChildVectors:
    """How children become vectors, and which store holds them."""

    embedder: RememberedEmbedder
    store: StoreConfig
    override: Any = None  # an object in place of the store that is named

    def identity(self) -> Mapping[str, Any]:
        """Return whatever can change what a search in them finds, beside the children."""
        return {
            "format": _VECTORS_FORMAT,
            "embedder": dict(self.embedder.identity()),
            "store": registry.identity(self.store, self.override),
        }

    def folder(self, searched: Path) -> Path:
        """Return where they lie below the folder `searched`; they may not be there."""
        return searched / f"vectors-{digest(self.identity())[:32]}"

    def ensure(self, searched: Path, children: Sequence[Chunk]) -> None:
        """Build the vectors below `searched`, where they are missing or damaged.

        Processes that want them at once build them once.
        """
        with whole_folder(self.folder(searched)) as partial:
            if not partial:
                return
            before = self.embedder.replayed.seconds + self.embedder.embedded.seconds
            vectors = self.embedder.embed_documents([child.text for child in children])
            took = self.embedder.replayed.seconds + self.embedder.embedded.seconds - before
            labels = [access_label(child.namespace, child.permissions) for child in children]
            ids = [child.chunk_id for child in children]
            registry.stores_of(self.store, self.override).build(partial, ids, vectors, labels, self.store.url)
            (partial / TOOK).write_text(json.dumps({"seconds": took}), encoding="utf-8")

    def open(self, searched: Path) -> SearchedRows:
        """Return the store that `ensure` built."""
        return registry.stores_of(self.store, self.override).open(self.folder(searched))
