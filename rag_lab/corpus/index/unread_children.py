"""What an embedding model never reads of an index's children: counted once, and kept beside the vectors.

The vector of a child that is longer than the model reads stands for its beginning; what follows is not searched.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rag_lab._kit.digest import digest
from rag_lab._kit.whole_folder import whole_folder
from rag_lab.models.limits.unread import Unread
from rag_lab.models.remembered_embeddings import RememberedEmbedder
from rag_lab.records import Chunk, Hit

_FORMAT = 1  # raised when what is counted changes
_FILE = "unread.json"


@dataclass(frozen=True, slots=True)
class UnreadChildren:
    """How long children are for one embedding model, and the tokens beyond its limit by the id of each longer one."""

    total: Unread
    longer: Mapping[str, int] = field(default_factory=dict)

    def of_hits(self, hits: Iterable[Hit]) -> list[int]:
        """Return how many tokens of each hit's child were never embedded."""
        return [self.longer.get(hit.chunk_id, 0) for hit in hits]


def unread_children(
    embedder: RememberedEmbedder, searched: Path, children: Callable[[], Sequence[Chunk]]
) -> UnreadChildren | None:
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
            found = asdict(_counted(embedder, limit, children()))
            (partial / _FILE).write_text(json.dumps(found), encoding="utf-8")
    saved = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    return UnreadChildren(Unread(**saved["total"]), saved["longer"])


def _counted(embedder: RememberedEmbedder, limit: int, children: Sequence[Chunk]) -> UnreadChildren:
    counts = embedder.text_tokens([child.text for child in children], "document")
    characters = sum(len(child.text) for child in children)
    longer = {child.chunk_id: n - limit for child, n in zip(children, counts, strict=True) if n > limit}
    return UnreadChildren(Unread.of(counts, characters, limit), longer)
