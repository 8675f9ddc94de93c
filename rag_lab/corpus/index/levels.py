"""From children that a search finds to the units that are retrieved: the children themselves, parents, or documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from rag_lab.corpus.index.chunk_store import ChunkStore
from rag_lab.records import Hit, Level
from rag_lab.stores.rows import Found

Search = Callable[[Sequence[int], int], Found]  # (rows of queries, children wanted of each) -> ids and scores
Place = tuple[str, int | None, int, int]  # source, page, start, end

# First guess of how many children must be searched for one more unit.
_CHILDREN_PER_UNIT: dict[Level, int] = {"child": 1, "parent": 4, "document": 8}


class Units:
    """The units of one level of a corpus.

    A document is a file, so that a result holds each file once. The reader gets the whole of it; of a file with pages,
    the page that matched best.
    """

    def __init__(self, chunks: ChunkStore, level: Level) -> None:
        self._chunks = chunks
        self.level = level

    def best(self, search: Search, n_queries: int, k: int, step: str) -> list[list[Hit]]:
        """Return, for each query, the k units whose best child scores highest, best first.

        Fewer only where the search finds fewer. A hit's score is that of its best child, kept under the name `step`,
        too; ties go to the child that `search` has first.
        """
        hits: list[list[Hit]] = [[] for _ in range(n_queries)]
        pending = list(range(n_queries))
        fan_out = k * _CHILDREN_PER_UNIT[self.level]
        while pending:
            found = list(zip(pending, *search(pending, fan_out), strict=True))
            for row, ids, scores in found:
                hits[row] = self._hits(ids, scores, k, step)
            pending = [row for row, ids, _ in found if len(hits[row]) < k and len(ids) == fan_out]
            fan_out *= 4
        return hits

    def _hits(self, ids: Sequence[str], scores: Sequence[float], k: int, step: str) -> list[Hit]:
        best: dict[str, Hit] = {}
        for chunk_id, score in zip(ids, scores, strict=True):
            unit_id = self._unit_id(chunk_id)
            if unit_id not in best:
                best[unit_id] = Hit(unit_id, chunk_id, *self._place(chunk_id), score, {step: score})
            if len(best) == k:
                break
        return list(best.values())

    def _unit_id(self, chunk_id: str) -> str:
        if self.level == "child":
            return chunk_id
        parent_id = _parent_id(chunk_id)
        return parent_id if self.level == "parent" else f"{self._spans[parent_id][0]}#"

    def _place(self, chunk_id: str) -> Place:
        if self.level == "child":
            child = self._chunks.child(chunk_id)
            return child.source, child.page, child.start, child.end
        place = self._spans[_parent_id(chunk_id)]
        return place if self.level == "parent" else self._document(place)

    def _document(self, place: Place) -> Place:
        document = self._chunks.document(*place[:2])
        return document.source, document.page, 0, len(document.text)

    @cached_property
    def _spans(self) -> dict[str, Place]:
        return self._chunks.spans()


def _parent_id(chunk_id: str) -> str:
    return chunk_id.rpartition("/")[0]
