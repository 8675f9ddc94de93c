"""The contracts of what reads, splits and searches documents."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.reading import file_reader_of
from rag_lab.corpus.spans import Span, row_spans
from rag_lab.corpus.splitters import Splitter, Unsplit, splitter_of
from rag_lab.models.protocols import Vectors, unit_vectors
from rag_lab.stores.config import StoreConfig, VectorKind
from rag_lab.stores.engine import Found, SearchedRows
from rag_lab.stores.registry import Stores, stores_of
from rag_lab.testing.contracts.module import ModuleContract

_ROW = "| a cell of some length | 275 bar, and what else there is to say of it | RV1 |\n"
_SPLIT = [
    "",
    " \n\n ",
    "pump",
    "One. One. One. One. " * 20,
    f"Before. {'word ' * 40}\n{_ROW}after",
    _ROW * 6,
    f"# Oil\n\nEvery year.\n\n## Valves\n\n{_ROW * 2}\n275 bar?! Yes.\n\n# Oven\n\nHot. {'aa ' * 99}",
    "油压。pump ?! \n\nThe valve opens. " * 9,
]
DIM = 32
_ROUNDING = 1e-5


class FileReaderContract(ModuleContract):
    """A file reader: `(path) -> text`, texts or LangChain's documents. `content` is a file of its kind."""

    content: bytes = b"The press runs at 140 bar.\n"
    suffix = ".txt"

    def identity(self) -> Mapping[str, Any]:
        return file_reader_of(self.make())[1]

    def test_it_reads_the_same_documents_again_one_a_page(self, tmp_path: Path) -> None:
        path = tmp_path / f"sample{self.suffix}"
        path.write_bytes(self.content)
        first, again = (file_reader_of(self.make())[0](path, path.name) for _ in range(2))
        assert first == again
        assert any(document.text.strip() for document in first.documents)
        assert {document.source for document in first.documents} == {path.name}
        assert len({document.page for document in first.documents}) == len(first.documents)


class SplitterContract(ModuleContract):
    """A splitter: `(text) -> pieces or spans`, a splitter of LangChain's, or a whole `Splitter`."""

    def built(self) -> Splitter:
        """Return it as a corpus is cut by it."""
        return splitter_of(CorpusConfig(), None, self.make())

    def _spans(self, texts: Sequence[str]) -> list[list[Span]]:
        found = self.built().split(texts)
        assert not (refused := [item.reason for item in found if isinstance(item, Unsplit)]), refused
        return [item for item in found if not isinstance(item, Unsplit)]

    def test_pieces_hold_the_whole_text_in_order_without_space_around_them(self) -> None:
        for text, spans in zip(_SPLIT, self._spans(_SPLIT), strict=True):
            assert list(spans) == sorted(spans, key=lambda span: span[0])
            assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
            held = {place for start, end in spans for place in range(start, end)}
            assert all(place in held or letter.isspace() for place, letter in enumerate(text))
            # No piece begins or ends within a row of a table.
            inside = {place for start, end in row_spans(text) for place in range(start + 1, end)}
            assert not inside & {place for span in spans for place in span}

    def test_a_text_is_split_the_same_whatever_the_batch(self) -> None:
        together = self._spans(_SPLIT)
        assert together == [self._spans([text])[0] for text in _SPLIT]
        assert self._spans([]) == []


def unit(vectors: npt.ArrayLike) -> Vectors:
    """Return `vectors` with rows of length 1."""
    return unit_vectors(np.asarray(vectors, np.float32))


def random_units(n: int, seed: int) -> Vectors:
    """Return n directions."""
    return unit(np.random.default_rng(seed).normal(size=(n, DIM)))


def exact(ids: Sequence[str], vectors: Vectors, queries: Vectors, k: int, rows: Sequence[int] | None = None) -> Found:
    """Return the best of `rows` (all where None) by double precision rounded to seven digits, ties by row."""
    rows = range(len(ids)) if rows is None else rows
    found, cosines = [], []
    for query in queries:
        near = (vectors.astype(float) @ query.astype(float)).round(7).tolist()
        best = sorted(rows, key=lambda row: (-near[row], row))[:k]
        found.append([ids[row] for row in best])
        cosines.append([near[row] for row in best])
    return found, cosines


class VectorStoreContract:
    """A vector store, in each of the forms in which one can be named; see docs/stores.md."""

    quantized: Sequence[VectorKind] = ()  # the kinds of store.vectors that it can hold besides float32

    def make(self) -> Any:
        """Return the class, the instance or the factory that is tested."""
        raise NotImplementedError("make() returns the store that is tested: a class, an instance or a factory.")

    def stores(self) -> Stores:
        """Return it as an index is built and opened by it."""
        return stores_of(StoreConfig(), self.make())

    def build(self, path: Path, ids: Sequence[str], vectors: Vectors, labels: Sequence[str] = ()) -> SearchedRows:
        """Build a store in a new folder below `path` and open it."""
        self.stores().build(path / "store", ids, vectors, labels or ["public"] * len(ids))
        return self.stores().open(path / "store")

    def test_cosines_are_exact_and_sorted(self, tmp_path: Path) -> None:
        store = self.build(tmp_path, ["east", "north", "north-east"], unit([[1, 0], [0, 1], [1, 1]]))
        ids, cosines = store.search(unit([[1, 0], [0, -1]]), 3)
        assert ids == [["east", "north-east", "north"], ["east", "north-east", "north"]]
        np.testing.assert_allclose(cosines, [[1, 0.5**0.5, 0], [0, -(0.5**0.5), -1]], atol=_ROUNDING)
        assert all(type(cosine) is float for cosine in cosines[0])

    def test_k_beyond_the_size_gives_everything_and_no_queries_give_nothing(self, tmp_path: Path) -> None:
        store = self.build(tmp_path, list("abc"), random_units(3, 0))
        assert [sorted(row) for row in store.search(random_units(2, 1), 50)[0]] == [list("abc")] * 2
        assert store.search(np.zeros((0, DIM), np.float32), 3) == ([], [])

    def test_ties_keep_the_order_of_insertion_even_across_the_cut(self, tmp_path: Path) -> None:
        vectors = np.repeat(random_units(2, 3), 60, axis=0)
        ids = [str(name) for name in np.random.default_rng(0).permutation(120)]
        store = self.build(tmp_path, ids, vectors)
        for k in (1, 3, 40):
            assert store.search(vectors[:1], k)[0] == [ids[:k]]

    def test_it_gives_the_lists_of_exact_search(self, tmp_path: Path) -> None:
        vectors, queries = random_units(1500, 5), random_units(20, 6)
        vectors[700:720] = vectors[40:60]  # ties
        queries[:10] = vectors[40:50]
        ids = [f"dir/file.pdf#p{number}/0" for number in range(len(vectors))]
        store = self.build(tmp_path, ids, vectors)
        for k in (1, 10, 100):
            assert store.search(queries, k) == exact(ids, vectors, queries, k)

    def test_a_filter_is_applied_before_the_cut(self, tmp_path: Path) -> None:
        vectors = np.vstack([np.repeat(unit([[1] + [0] * (DIM - 1)]), 400, axis=0), unit([[-1] + [0] * (DIM - 1)])])
        ids = [f"c{number}" for number in range(401)]
        store = self.build(tmp_path, ids, vectors, ["secret"] * 400 + ["public"])
        assert store.search(vectors[:2], 5, frozenset({"public"}))[0] == [["c400"], ["c400"]]
        assert store.search(vectors[:2], 5, frozenset({"unheard-of"})) == ([[], []], [[], []])
        assert store.search(vectors[:1], 5, frozenset())[0] == [[]]
        assert store.search(vectors[:1], 5, frozenset({"public", "secret", "other"}))[0] == [ids[:5]]
        assert frozenset(store.rows.labels) == {"public", "secret"}

    def test_copies_of_one_text_hide_nothing(self, tmp_path: Path) -> None:
        random = np.random.default_rng(2)
        order = random.permutation(2500)
        vectors = np.vstack([np.repeat(random_units(3, 12), 700, axis=0), random_units(400, 13)])[order]
        queries = vectors[np.flatnonzero(order >= 2100)[:40]]
        ids = [f"c{number}" for number in range(len(vectors))]
        assert self.build(tmp_path, ids, vectors).search(queries, 10) == exact(ids, vectors, queries, 10)

    def test_vectors_in_fewer_bits_take_less_disk_and_find_nearly_the_same(self, tmp_path: Path) -> None:
        vectors = unit(np.random.default_rng(4).normal(size=(300, 384)))
        ids, labels = [f"c{number}" for number in range(len(vectors))], ["public", "secret"] * 150
        for kind in self.quantized:
            stores_of(StoreConfig(name="exact", vectors=kind), self.make()).build(tmp_path / kind, ids, vectors, labels)
            store = self.stores().open(tmp_path / kind)
            for allowed in (None, frozenset({"public"})):
                found, cosines = store.search(vectors[:9:2], 5, allowed)
                rows = range(0, len(ids), 2 if allowed else 1)
                expected, near = exact(ids, vectors, vectors[:9:2], 5, rows)
                assert sum(len({*a} & {*b}) for a, b in zip(found, expected, strict=True)) >= 18
                assert [of_one[0] for of_one in found] == ids[:9:2]
                np.testing.assert_allclose([row[0] for row in cosines], [row[0] for row in near], atol=0.02)
            kept = sum(path.stat().st_size for path in (tmp_path / kind).glob("*.npy"))
            assert kept < 0.31 * vectors.nbytes

    def test_it_is_found_again_after_its_folder_was_moved(self, tmp_path: Path) -> None:
        vectors = random_units(50, 7)
        self.stores().build(tmp_path / "partial", [str(n) for n in range(50)], vectors, ["even", "odd"] * 25)
        (tmp_path / "partial").rename(tmp_path / "moved")
        found, _ = self.stores().open(tmp_path / "moved").search(vectors[:3], 1, frozenset({"even"}))
        assert [found[0], found[2]] == [["0"], ["2"]]
