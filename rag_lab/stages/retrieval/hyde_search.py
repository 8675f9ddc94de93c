"""The search by hypothetical documents: the mean of their embeddings, and of the question's where it is asked for.

Gao et al. 2022, "Precise zero-shot dense retrieval without relevance labels", equations 7 and 8: the mean of n
documents that were sampled for one question, with the question as one more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from rag_lab.access import allowed_labels
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.models.limits.read_limit import unread_of_texts
from rag_lab.models.protocols import Vectors
from rag_lab.models.unit_vectors import unit_vectors
from rag_lab.records import Hit, Trace
from rag_lab.stages.retrieval.mmr import SearchMmr
from rag_lab.stages.retrieval.search import ACCESS, kept, kept_identity, n_wanted, unread_told
from rag_lab.stages.retrieval.searcher import DenseSearcher
from rag_lab.stages.stage import Outcome

HYDE = "hyde"  # the search by hypothetical document


@dataclass(frozen=True)
class SearchHyde:
    """Find the k units nearest to a trace's hypothetical documents, among those that its asker may see.

    Documents are embedded as documents are. Hits below `min_score` are left out. `several` says that there may be
    other documents beside the first, `with_query` that what is searched counts as one more.
    """

    searcher: DenseSearcher
    index: CorpusIndex
    k: int
    min_score: float | None = None
    several: bool = False
    with_query: bool = False
    mmr: SearchMmr | None = None

    name: ClassVar[str] = "retrieve_hyde"
    writes: ClassVar[tuple[str, ...]] = (f"hits.{HYDE}",)
    batch_size: ClassVar[int] = 256
    costly: ClassVar[bool] = True

    @property
    def reads(self) -> tuple[str, ...]:
        """The documents, what is searched where it counts, and what the asker may see."""
        others = ("other_hypotheticals",) if self.several else ()
        return ("hypothetical", *others, *(("search_query",) if self.with_query else ()), *ACCESS)

    def identity(self) -> Mapping[str, Any]:
        """The search, k, the threshold, and what is added to the mean."""
        query = {"with_query": True} if self.with_query else {}
        return {"version": 3, "searcher": self.searcher.identity(), "k": self.k, **kept_identity(self), **query}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Search for all traces of the batch that have a document in one call."""
        routed = [trace for trace in traces if trace.hypothetical]
        labels = self.index.labels if routed else frozenset()
        allowed = [allowed_labels(labels, trace.question) for trace in routed]
        found = self.searcher.nearest(self._means(routed), n_wanted(self), allowed) if routed else []
        lists = iter(kept(self, found, HYDE))
        return [self._outcome(trace, next(lists)) if trace.hypothetical else self._without() for trace in traces]

    def _outcome(self, trace: Trace, hits: Sequence[Hit]) -> Outcome:
        own = self.searcher.unread_of_texts(trace.hypotheticals)
        if self.with_query:
            own += sum(unread_of_texts(self.searcher.embedder, [trace.search_query or ""], "query"))
        unread, reason = unread_told(self.searcher, own, hits)
        return Outcome({self.writes[0]: tuple(hits)}, reason=reason, truncated_tokens=unread)

    def _without(self) -> Outcome:
        return Outcome({self.writes[0]: ()}, reason="nothing to search by", seconds=0.0)

    def _means(self, traces: Sequence[Trace]) -> Vectors:
        """Return the unit vector that each trace is searched by, (n, dim)."""
        texts = [trace.hypotheticals for trace in traces]
        rows = iter(self.searcher.embedder.embed_documents([text for own in texts for text in own]))
        sums = [np.sum(list(islice(rows, len(own))), axis=0) for own in texts]
        if self.with_query:
            queries = self.searcher.embedder.embed_queries([trace.search_query or "" for trace in traces])
            sums = [total + query for total, query in zip(sums, queries, strict=True)]
        return unit_vectors(np.stack(sums))
