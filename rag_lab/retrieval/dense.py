"""Dense retrieval: children are searched, their parents returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from rag_lab.corpus.index import CorpusIndex
from rag_lab.models.base import Embedder
from rag_lab.records import Hit, Trace
from rag_lab.stage import Outcome


@dataclass(frozen=True)
class DenseSearch:
    """Search by the question (`by="question"`) or by the hypothetical document (`by="hypothetical"`)."""

    index: CorpusIndex
    embedder: Embedder
    k: int
    by: Literal["question", "hypothetical"] = "question"

    batch_size: ClassVar[int] = 256
    costly: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """`retrieve` or `retrieve_hyde`."""
        return "retrieve" if self.by == "question" else "retrieve_hyde"

    @property
    def reads(self) -> tuple[str, ...]:
        """The text that is searched."""
        return ("search_query",) if self.by == "question" else ("hypothetical",)

    @property
    def writes(self) -> tuple[str, ...]:
        """The list that is filled."""
        return ("base_hits",) if self.by == "question" else ("hyde_hits",)

    def identity(self) -> Mapping[str, Any]:
        """Index, embedding model, k, and what is searched."""
        return {
            "version": 1,
            "index": self.index.digest,
            "embedder": self.embedder.identity(),
            "k": self.k,
            "by": self.by,
        }

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Return k parents for each trace that has something to search by."""
        texts = [getattr(trace, self.reads[0]) for trace in traces]
        found = iter(self._search([text for text in texts if text]))
        return [Outcome({self.writes[0]: tuple(next(found))}) if text else self._nothing() for text in texts]

    def _nothing(self) -> Outcome:
        return Outcome({self.writes[0]: ()}, reason=f"no {self.by} to search by", seconds=0.0)

    def _search(self, texts: Sequence[str]) -> list[list[Hit]]:
        if not texts:
            return []
        embed = self.embedder.embed_queries if self.by == "question" else self.embedder.embed_documents
        step = "dense" if self.by == "question" else "hyde"
        return [
            [replace(hit, scores={step: hit.score}) for hit in hits] for hits in self.index.search(embed(texts), self.k)
        ]
