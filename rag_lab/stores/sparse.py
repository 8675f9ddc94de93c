"""From text to terms, for any script, and sparse indexes by name.

Texts are normalized (NFKC, case folded) and cut at everything that is no letter, digit or mark. Scripts that are
written without spaces (Chinese, Japanese, Thai, ...) become overlapping pairs of characters, which need no dictionary
and search about as well as words do (Nie, Gao, Zhang and Zhou 2000, "On the use of words and n-grams for Chinese
information retrieval"). An analyzer named after a language then takes words to their stems by Snowball (Porter 2001);
`ngrams` cuts words into three characters instead, which finds inflected and compound words of any language.

Each index is kept in the index of its corpus and built when first asked for.

`bm25` is Okapi BM25 with Lucene's idf, scored when the index is built (bm25s; Lù 2024, "BM25S", section 2): k1 = 1.5
and b = 0.75; a term that stands twice in the query counts twice. `tfidf` is TF-IDF with cosine similarity, to
the last digit as scikit-learn defines it, whose import takes longer than a search: smoothed idf, ln((1 + texts) /
(1 + texts with the term)) + 1, rows of unit length. Vocabulary (JSON), idf and document matrix (arrays) are kept.
"""

import json
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt

from rag_lab._kit.digest import digest, whole_folder
from rag_lab._kit.registry import version
from rag_lab.access import Labels, access_label
from rag_lab.records import Chunk
from rag_lab.stores.config import Unit
from rag_lab.stores.engine import Found, batches

Analyzer = Literal[
    "unicode", "ngrams", "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian",
    "italian", "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "turkish",
]  # fmt: skip

TERMS_VERSION = 1  # raised when an analyzer gives other terms than before
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_TERM = rf"(?P<unspaced>[{_UNSPACED}]\p{{M}}*)+|[\p{{L}}\p{{N}}\p{{M}}--[{_UNSPACED}]]+"
AnalyzerChoice = Analyzer | Literal["auto"]
_PLAIN: Analyzer = "unicode"
# ISO 639-1, then 639-2 and 639-3 (https://www.loc.gov/standards/iso639-2).
_CODES = {
    "arabic": "ar ara arb", "danish": "da dan", "dutch": "nl nld dut", "english": "en eng", "finnish": "fi fin",
    "french": "fr fra fre", "german": "de deu ger", "greek": "el ell gre", "hungarian": "hu hun", "italian": "it ita",
    "norwegian": "no nor nb nob nn nno", "portuguese": "pt por", "romanian": "ro ron rum", "russian": "ru rus",
    "spanish": "es spa", "swedish": "sv swe", "turkish": "tr tur",
}  # fmt: skip
_BY_NAME = {name: language for language, codes in _CODES.items() for name in (language, *codes.split())}

_FORMAT = 3  # raised when the files of an index, or what is indexed, change
_IDS_FILE = "ids.json"
_ANALYZER_FILE = "analyzer.json"
_POSTINGS = "postings"
_TERMS_FILE = "terms.json"  # analyzer, and the vocabulary by column
_QUERIES_AT_ONCE = 256
SparseName = Literal["bm25", "tfidf"]


def terms(texts: Sequence[str], analyzer: Analyzer) -> list[list[str]]:
    """Return the terms of each text, in order, repetitions kept; a text without letters and digits has none."""
    import regex
    import Stemmer

    pattern = regex.compile(_TERM, flags=regex.V1)
    stem = None if analyzer in ("unicode", "ngrams") else Stemmer.Stemmer(analyzer).stemWord
    found: list[list[str]] = []
    for text in texts:
        of_text: list[str] = []
        for match in pattern.finditer(unicodedata.normalize("NFKC", text).casefold()):
            characters, word = match.captures("unspaced"), match.group()
            if len(characters) > 1:
                of_text += [first + second for first, second in pairwise(characters)]
            elif characters or analyzer == "unicode":
                of_text.append(word)
            elif stem:
                of_text.append(stem(word))
            else:
                marked = f"_{word}_"
                of_text += [marked[start : start + 3] for start in range(max(1, len(marked) - 2))]
        found.append(of_text)
    return found


def analyzer_for(choice: AnalyzerChoice, language: str) -> Analyzer:
    """Return `choice`, or for `auto` the analyzer of a language (English, en, en-US, deu); the plain one if unknown."""
    if choice != "auto":
        return choice
    name = re.split("[-_]", language.strip().casefold())[0]
    return cast("Analyzer", _BY_NAME.get(name, _PLAIN))


class SparseIndex(ABC):
    """Texts in a folder, ranked by the terms that they share with a query."""

    library: ClassVar[str]

    def __init__(self, path: Path) -> None:
        self.path = path

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

    def __init__(self, path: Path) -> None:
        import bm25s

        super().__init__(path)
        self._analyzer: Analyzer = json.loads((path / _ANALYZER_FILE).read_text(encoding="utf-8"))
        self._postings = bm25s.BM25.load(path / _POSTINGS, mmap=True, show_progress=False)
        # The same memory as plain arrays: slices of a memmap cost more than the sums over them.
        arrays = {name: np.asarray(self._postings.scores[name]) for name in ("data", "indices", "indptr")}
        self._postings.scores |= arrays

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


class TfidfIndex(SparseIndex):
    """A TF-IDF index in a folder."""

    library: ClassVar[str] = "scipy"

    def __init__(self, path: Path) -> None:
        import scipy.sparse

        super().__init__(path)
        saved = json.loads((path / _TERMS_FILE).read_text(encoding="utf-8"))
        self._analyzer: Analyzer = saved["analyzer"]
        self._columns = {term: column for column, term in enumerate(saved["vocabulary"])}
        self._idf = np.load(path / "idf.npy", allow_pickle=False)
        self._matrix = scipy.sparse.load_npz(path / "matrix.npz")  # the documents' unit rows as columns, (n_terms, n)

    @classmethod
    def build(cls, path: Path, ids: Sequence[str], texts: Sequence[str], analyzer: Analyzer) -> None:
        """See `SparseIndex`."""
        import scipy.sparse

        path.mkdir(parents=True)
        (path / _IDS_FILE).write_text(json.dumps(list(ids)), encoding="utf-8")
        found = terms(texts, analyzer)
        vocabulary = sorted(set(chain.from_iterable(found)))
        counts = _counts(found, {term: column for column, term in enumerate(vocabulary)})
        having = np.bincount(counts.indices, minlength=len(vocabulary)).astype(np.float32)
        idf = np.log(np.float32(len(texts) + 1) / (having + 1)) + 1
        saved = json.dumps({"analyzer": analyzer, "vocabulary": vocabulary}, ensure_ascii=False)
        (path / _TERMS_FILE).write_text(saved, encoding="utf-8")
        np.save(path / "idf.npy", idf, allow_pickle=False)
        scipy.sparse.save_npz(path / "matrix.npz", _unit_rows(counts, idf).T.tocsr(), compressed=False)

    def search(self, texts: Sequence[str], k: int) -> Found:
        """See `SparseIndex`."""
        return self._found(self._cosines(texts), k)

    def _cosines(self, texts: Sequence[str]) -> Iterator[npt.NDArray[np.float32]]:
        """Give the cosines of each query with all n texts."""
        for part in batches(len(texts), _QUERIES_AT_ONCE):
            counts = _counts(terms(texts[part], self._analyzer), self._columns)
            product = (_unit_rows(counts, self._idf) @ self._matrix).tocsr()
            for start, end in pairwise(product.indptr):
                cosines = np.zeros(product.shape[1], np.float32)
                cosines[product.indices[start:end]] = product.data[start:end]
                yield cosines


def _counts(found: Sequence[Sequence[str]], columns: Mapping[str, int]) -> Any:
    """Return how often each known term stands in each text, a sparse matrix, (texts, terms)."""
    import scipy.sparse

    known = [[columns[term] for term in some if term in columns] for some in found]
    indices = np.fromiter(chain.from_iterable(known), np.int32)
    starts = np.cumsum([0, *map(len, known)])
    ones = np.ones(len(indices), np.float32)
    counts = scipy.sparse.csr_matrix((ones, indices, starts), shape=(len(known), len(columns)))
    counts.sum_duplicates()
    return counts


def _unit_rows(counts: Any, idf: npt.NDArray[np.float32]) -> Any:
    """Return the counts times idf, in rows of length one; a row without a term stays as it is."""
    counts.data *= idf[counts.indices]
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    counts.data = (counts.data / np.sqrt(np.bincount(row, counts.data**2))[row]).astype(np.float32)
    return counts


SPARSE: dict[SparseName, type[SparseIndex]] = {"bm25": BM25Index, "tfidf": TfidfIndex}


@cache  # versions are looked up on disk
def identity(name: SparseName, analyzer: Analyzer, units: Unit = "child") -> Mapping[str, Any]:
    """Return what can change the results on the same corpus, as JSON values."""
    index = SPARSE[name]
    found = {
        "name": name,
        "format": _FORMAT,
        "analyzer": [analyzer, TERMS_VERSION],
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
    """Open a sparse index in `folder`; where it is missing or damaged, build it once from `texts`, which are its units.

    It holds the texts whose label is `visible` alone (all where None): weights of words and lengths of texts are
    statistics of whatever is indexed, so those of closed texts would show in the scores of open ones.
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
