"""The contract of a sparse index: see `rag_lab.stores.sparse`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rag_lab.stores.sparse import SparseIndex

TEXTS = [
    "The press runs at 140 bar.",
    "The oven cures at 180 degrees; the oven trips.",
    "",
    "The press runs at 140 bar.",
    "!!!",
    "Grease the ram guides of the press every 500 hours, oven or not.",
]


class SparseIndexContract:
    """A search by shared terms: `make` returns its class."""

    def make(self) -> type[SparseIndex]:
        """Return the class that is tested."""
        raise NotImplementedError("make() returns the class of the index that is tested.")

    def build(self, path: Path, texts: Sequence[str] = TEXTS) -> SparseIndex:
        """Build an index of `texts`, named t0, t1 and so on, in a new folder below `path`, and open it."""
        ids = [f"t{number}" for number in range(len(texts))]
        self.make().build(path / "index", ids, texts, "unicode")
        return self.make().open(path / "index")

    def test_only_texts_that_share_a_term_are_found(self, tmp_path: Path) -> None:
        index = self.build(tmp_path)
        assert index.search(["canteen", "", "?!"], 5) == ([[], [], []], [[], [], []])
        assert len(index.search(["the"], 50)[0][0]) == 4

    def test_scores_fall(self, tmp_path: Path) -> None:
        (ids,), (scores,) = self.build(tmp_path).search(["oven of the press"], 6)
        assert len(ids) == len(set(ids)) == len(scores)
        assert scores == sorted(scores, reverse=True) and all(score > 0 for score in scores)

    def test_ties_keep_the_order_of_insertion_even_across_the_cut(self, tmp_path: Path) -> None:
        index = self.build(tmp_path, ["press bar", "oven", *["press oven"] * 50])
        assert index.search(["oven press"], 3)[0] == [["t2", "t3", "t4"]]

    def test_a_batch_gives_what_single_queries_give(self, tmp_path: Path) -> None:
        index, queries = self.build(tmp_path), ["press", "oven trips", "nothing of this", "ram guides"] * 80
        ids, scores = index.search(queries, 3)
        for query, found, values in list(zip(queries, ids, scores, strict=True))[:4]:
            assert index.search([query], 3) == ([found], [values])
        assert ids[:4] == ids[-4:]
        assert index.search([], 3) == ([], [])

    def test_texts_without_terms_are_no_error(self, tmp_path: Path) -> None:
        for place, texts in enumerate(([""], ["", "..."], ["", "oven"])):
            found = self.build(tmp_path / str(place), texts).search(["oven", ""], 3)[0]
            assert found == [["t1"] if "oven" in texts else [], []]

    def test_it_is_the_same_after_its_folder_was_moved(self, tmp_path: Path) -> None:
        here = self.build(tmp_path).search(["oven press", "ram"], 4)
        (tmp_path / "index").rename(tmp_path / "moved")
        assert self.make().open(tmp_path / "moved").search(["oven press", "ram"], 4) == here
