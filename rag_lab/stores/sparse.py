"""Sparse indexes by name; each is kept in the index of its corpus and built when first asked for.

`bm25` is Okapi BM25 with Lucene's idf, scored when the index is built (bm25s; Lù 2024, "BM25S", section 2): k1 = 1.5
and b = 0.75; a term that stands twice in the query counts twice. `tfidf` is TF-IDF with cosine similarity, as
scikit-learn defines it: smoothed idf, rows of unit length; the fitted vectorizer is kept as its vocabulary (JSON), idf
and document matrix (arrays), never as a pickle.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from rag_lab._kit.digest import digest, whole_folder
from rag_lab.access import Labels, access_label
from rag_lab.records import Chunk
from rag_lab.stores.analyzer import VERSION as ANALYZERS_VERSION
from rag_lab.stores.analyzer import Analyzer, terms
from rag_lab.stores.config import Unit
from rag_lab.stores.rows import Found, batches

_FORMAT = 3  # raised when the files of an index, or what is indexed, change
_IDS_FILE = "ids.json"
_ANALYZER_FILE = "analyzer.json"
_POSTINGS = "postings"
_TERMS_FILE = "terms.json"  # analyzer, and the vocabulary by column
_QUERIES_AT_ONCE = 256
SparseName = Literal["bm25", "tfidf"]


class SparseIndex(ABC):
    """Texts in a folder, ranked by the terms that they share with a query. Opening is lazy."""

    library: ClassVar[str]

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return the index that `build` wrote, for reading."""
        return cls(path)

    @classmethod
    @abstractmethod
    def build(cls, path: Path, ids: Sequence[str], texts: Sequence[str], analyzer: Analyzer) -> None:
        """Write a new index of n >= 1 texts into the folder `path`, which is made; `ids` are in their order."""

    @abstractmethod
    def search(self, texts: Sequence[str], k: int) -> Found:
        """Return the ids of the k texts that score highest for each query, and their scores, best first.

        Only texts that share a term with the query are found, so there may be fewer than k, or none. Equal scores stand
        in the order in which `build` had the ids.
        """

    @cached_property
    def _ids(self) -> list[str]:
        ids: list[str] = json.loads((self.path / _IDS_FILE).read_text(encoding="utf-8"))
        return ids

    def _found(self, scores: Iterable[npt.NDArray[np.floating] | None], k: int) -> Found:
        """Return ids and scores of the k best of (n,) scores for each query; none where there are no scores."""
        found: Found = ([], [])
        for of_query in scores:
            positions = [] if of_query is None else best(of_query, k).tolist()
            found[0].append([self._ids[position] for position in positions])
            found[1].append([] if of_query is None else of_query[positions].tolist())
        return found


def best(scores: npt.NDArray[np.floating], k: int) -> npt.NDArray[np.intp]:
    """Return the positions of the k highest of the scores above 0, (n,), best first, ties by position."""
    above = scores > 0
    n = np.count_nonzero(above)
    if n > k:
        # Choosing among all is quicker than gathering most of them, and slow where many are equal, as zeros are.
        values = scores if 2 * n > len(scores) else scores[np.flatnonzero(above)]
        above = scores >= np.partition(values, len(values) - k)[len(values) - k]
    found = np.flatnonzero(above)
    return found[np.argsort(-scores[found], kind="stable")[:k]]


class BM25Index(SparseIndex):
    """A BM25 index in a folder; postings stay on disk and are mapped into memory."""

    library: ClassVar[str] = "bm25s"

    @classmethod
    def build(cls, path: Path, ids: Sequence[str], texts: Sequence[str], analyzer: Analyzer) -> None:
        """See `SparseIndex`."""
        import bm25s

        path.mkdir(parents=True)
        (path / _IDS_FILE).write_text(json.dumps(list(ids)), encoding="utf-8")
        (path / _ANALYZER_FILE).write_text(json.dumps(analyzer), encoding="utf-8")
        index = bm25s.BM25(k1=1.5, b=0.75, method="lucene", backend="numpy", csc_backend="scipy")
        found = terms(texts, analyzer)
        # bm25s cannot index a corpus without any term; the empty term is never asked for.
        index.index(found if any(found) else [[""] for _ in found], show_progress=False)
        index.save(path / _POSTINGS, show_progress=False)

    def search(self, texts: Sequence[str], k: int) -> Found:
        """See `SparseIndex`."""
        known = (self._postings.get_tokens_ids(query) for query in terms(texts, self._analyzer))
        return self._found((self._postings.get_scores_from_ids(ids) if ids else None for ids in known), k)

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


class TfidfIndex(SparseIndex):
    """A TF-IDF index in a folder."""

    library: ClassVar[str] = "scikit-learn"

    @classmethod
    def build(cls, path: Path, ids: Sequence[str], texts: Sequence[str], analyzer: Analyzer) -> None:
        """See `SparseIndex`."""
        import scipy.sparse

        path.mkdir(parents=True)
        (path / _IDS_FILE).write_text(json.dumps(list(ids)), encoding="utf-8")
        vectorizer = _vectorizer(analyzer)
        try:
            matrix = vectorizer.fit_transform(texts)
        except ValueError:  # no text has a term: a vocabulary of the empty term alone, which no query has
            vectorizer = _vectorizer(analyzer, [""])
            matrix = vectorizer.fit_transform(texts)
        vocabulary = sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.get)
        saved = json.dumps({"analyzer": analyzer, "vocabulary": vocabulary}, ensure_ascii=False)
        (path / _TERMS_FILE).write_text(saved, encoding="utf-8")
        np.save(path / "idf.npy", vectorizer.idf_, allow_pickle=False)
        scipy.sparse.save_npz(path / "matrix.npz", matrix.T.tocsr(), compressed=False)

    def search(self, texts: Sequence[str], k: int) -> Found:
        """See `SparseIndex`."""
        return self._found(self._cosines(texts), k)

    def _cosines(self, texts: Sequence[str]) -> Iterator[npt.NDArray[np.float32]]:
        """Give the cosines of each query with all n texts."""
        for part in batches(len(texts), _QUERIES_AT_ONCE):
            product = (self._vectorizer.transform(texts[part]) @ self._matrix).tocsr()
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


def _vectorizer(analyzer: Analyzer, vocabulary: Sequence[str] | None = None) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(analyzer=lambda text: terms([text], analyzer)[0], vocabulary=vocabulary, dtype=np.float32)


SPARSE: dict[SparseName, type[SparseIndex]] = {"bm25": BM25Index, "tfidf": TfidfIndex}


@cache  # versions are looked up on disk
def identity(name: SparseName, analyzer: Analyzer, units: Unit = "child") -> Mapping[str, Any]:
    """Return what can change the results on the same corpus, as JSON values."""
    index = SPARSE[name]
    found = {
        "name": name,
        "format": _FORMAT,
        "analyzer": [analyzer, ANALYZERS_VERSION],
        "libraries": {library: version(library) for library in (index.library, "regex", "PyStemmer")},
    }
    return found if units == "child" else {**found, "units": units}


def open_sparse(
    folder: Path,
    name: SparseName,
    analyzer: Analyzer,
    texts: Callable[[], Iterable[Chunk]],
    units: Unit = "child",
    visible: Labels | None = None,
) -> SparseIndex:
    """Open a sparse index in `folder`; where it is missing or damaged, build it from `texts`, which are its units.

    It holds the texts whose label is `visible` alone (all where None): weights of words and lengths of texts are
    statistics of whatever is indexed, so those of closed texts would show in the scores of open ones. Processes that
    want it at the same time build it once.
    """
    index = SPARSE[name]
    whole = identity(name, analyzer, units)
    made_of = digest(whole if visible is None else [whole, sorted(visible)])
    target = folder / f"{name}-{analyzer}-{made_of[:12]}"
    with whole_folder(target) as folder_to_fill:
        if folder_to_fill:
            found = [c for c in texts() if visible is None or access_label(c.namespace, c.permissions) in visible]
            index.build(folder_to_fill, [c.chunk_id for c in found], [c.text for c in found], analyzer)
    return index(target)
