"""A sparse search that compares the question with whole files, and hands on the best child of each that it finds."""

from __future__ import annotations

from collections.abc import Sequence

from rag_lab.access import Labels
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.records import Hit, Level
from rag_lab.stores.analyzer import AnalyzerChoice
from rag_lab.stores.sparse import SparseName


def search_files(
    index: CorpusIndex,
    name: SparseName,
    analyzer: AnalyzerChoice,
    texts: Sequence[str],
    k: int,
    allowed: Labels | None,
    level: Level,
) -> list[list[Hit]]:
    """Return, for each text, a unit of `level` of each of the k files that score highest, best first.

    A unit has its file's score, kept under the name of the index, too. Of a file it is the unit whose child scores
    highest by itself, by the same method over all children.
    """
    found = zip(*index.sparse(name, analyzer, "document", allowed).search(texts, k), strict=True)
    of_children = index.search_terms(name, analyzer, texts, max(1, index.n_files), allowed, "document")
    hits = []
    for (sources, scores), children in zip(found, of_children, strict=True):
        best = {child.source: child.chunk_id for child in children}
        pairs = [(best[source], score) for source, score in zip(sources, scores, strict=True) if source in best]
        hits.append(index.units([child for child, _ in pairs], [score for _, score in pairs], k, level, name))
    return hits
