"""Okapi BM25 with Lucene's idf, scored when the index is built (bm25s; Lù 2024, "BM25S", section 2).

k1 = 1.5 and b = 0.75. A term that stands twice in the query counts twice.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rag_lab.stores.sparse.analyzer import Analyzer, terms
from rag_lab.stores.sparse.scored import ScoredTexts, write_ids
from rag_lab.stores.vector.vector_store import Found

_ANALYZER_FILE = "analyzer.json"
_POSTINGS = "postings"


class BM25Index(ScoredTexts):
    """A BM25 index in a folder; postings stay on disk and are mapped into memory."""

    library: ClassVar[str] = "bm25s"

    @classmethod
    def build(cls, path: Path, ids: Sequence[str], texts: Sequence[str], analyzer: Analyzer) -> None:
        """Write a new index of `texts` into the folder `path`; see `SparseIndex.build`."""
        import bm25s

        path.mkdir(parents=True)
        write_ids(path, ids)
        (path / _ANALYZER_FILE).write_text(json.dumps(analyzer), encoding="utf-8")
        index = bm25s.BM25(k1=1.5, b=0.75, method="lucene", backend="numpy", csc_backend="scipy")
        found = terms(texts, analyzer)
        # bm25s cannot index a corpus without any term; the empty term is never asked for.
        index.index(found if any(found) else [[""] for _ in found], show_progress=False)
        index.save(path / _POSTINGS, show_progress=False)

    def search(self, texts: Sequence[str], k: int) -> Found:
        """Return the ids and scores of the k best texts for each query; see `SparseIndex.search`."""
        found = [self._search(query, k) for query in terms(texts, self._analyzer)]
        return [ids for ids, _ in found], [scores for _, scores in found]

    def _search(self, query: Sequence[str], k: int) -> tuple[list[str], list[float]]:
        known = self._postings.get_tokens_ids(query)
        if not known:
            return [], []
        return self._best(self._postings.get_scores_from_ids(known), k)

    @cached_property
    def _analyzer(self) -> Analyzer:
        analyzer: Analyzer = json.loads((self.path / _ANALYZER_FILE).read_text(encoding="utf-8"))
        return analyzer

    @cached_property
    def _postings(self) -> Any:
        import bm25s

        index = bm25s.BM25.load(self.path / _POSTINGS, mmap=True, show_progress=False)
        # The same memory as plain arrays: slices of a memmap cost more than the sums over them.
        index.scores |= {name: np.asarray(index.scores[name]) for name in ("data", "indices", "indptr")}
        return index
