"""TF-IDF with cosine similarity, as scikit-learn defines it: smoothed idf, rows of unit length.

The fitted vectorizer is kept as its vocabulary (JSON), idf and document matrix (arrays), never as a pickle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from rag_lab.stores.sparse.analyzer import Analyzer, terms
from rag_lab.stores.sparse.scored import ScoredTexts, write_ids
from rag_lab.stores.vector.vector_store import Found

_TERMS_FILE = "terms.json"  # analyzer, and the vocabulary by column
_QUERIES_AT_ONCE = 256


class TfidfIndex(ScoredTexts):
    """A TF-IDF index in a folder."""

    library: ClassVar[str] = "scikit-learn"

    @classmethod
    def build(cls, path: Path, ids: Sequence[str], texts: Sequence[str], analyzer: Analyzer) -> None:
        """Write a new index of `texts` into the folder `path`; see `SparseIndex.build`."""
        import scipy.sparse

        path.mkdir(parents=True)
        write_ids(path, ids)
        vectorizer, matrix = _fit(texts, analyzer)
        vocabulary = sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.get)
        saved = json.dumps({"analyzer": analyzer, "vocabulary": vocabulary}, ensure_ascii=False)
        (path / _TERMS_FILE).write_text(saved, encoding="utf-8")
        np.save(path / "idf.npy", vectorizer.idf_, allow_pickle=False)
        scipy.sparse.save_npz(path / "matrix.npz", matrix.T.tocsr(), compressed=False)

    def search(self, texts: Sequence[str], k: int) -> Found:
        """Return the ids and cosines of the k best texts for each query; see `SparseIndex.search`."""
        found = [
            self._best(scores, k)
            for start in range(0, len(texts), _QUERIES_AT_ONCE)
            for scores in self._cosines(texts[start : start + _QUERIES_AT_ONCE])
        ]
        return [ids for ids, _ in found], [cosines for _, cosines in found]

    def _cosines(self, texts: Sequence[str]) -> Iterator[npt.NDArray[np.float32]]:
        """Give the cosines of each query with all n texts."""
        product = (self._vectorizer.transform(texts) @ self._matrix).tocsr()
        for start, end in pairwise(product.indptr):
            cosines = np.zeros(product.shape[1], np.float32)
            cosines[product.indices[start:end]] = product.data[start:end]
            yield cosines

    @cached_property
    def _vectorizer(self) -> Any:
        saved = json.loads((self.path / _TERMS_FILE).read_text(encoding="utf-8"))
        vectorizer = _vectorizer(saved["analyzer"], saved["vocabulary"])
        vectorizer.idf_ = np.load(self.path / "idf.npy", allow_pickle=False)
        return vectorizer

    @cached_property
    def _matrix(self) -> Any:
        """The documents' unit rows as columns, (n_terms, n)."""
        import scipy.sparse

        return scipy.sparse.load_npz(self.path / "matrix.npz")


def _fit(texts: Sequence[str], analyzer: Analyzer) -> tuple[Any, Any]:
    """Return the fitted vectorizer and the (n, n_terms) matrix of the texts."""
    vectorizer = _vectorizer(analyzer)
    try:
        return vectorizer, vectorizer.fit_transform(texts)
    except ValueError:  # no text has a term: a vocabulary of the empty term alone, which no query has
        vectorizer = _vectorizer(analyzer, [""])
        return vectorizer, vectorizer.fit_transform(texts)


def _vectorizer(analyzer: Analyzer, vocabulary: Sequence[str] | None = None) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(analyzer=_cutter(analyzer), vocabulary=vocabulary, dtype=np.float32)


def _cutter(analyzer: Analyzer) -> Callable[[str], list[str]]:
    return partial(_terms_of_one, analyzer=analyzer)


def _terms_of_one(text: str, analyzer: Analyzer) -> list[str]:
    return terms([text], analyzer)[0]
