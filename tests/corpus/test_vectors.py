"""Vectors lie beside the chunks and are made when somebody searches them, and not before."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rag_lab.access import access_label
from rag_lab.config import PipelineConfig
from rag_lab.corpus import build_index
from rag_lab.corpus import corpus_index as child_vectors
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, open_index
from rag_lab.models.truncation import Truncation
from rag_lab.pipeline import Pipeline
from rag_lab.stages.retrieval.search import DenseSearcher, SparseSearcher
from rag_lab.stores.config import StoreConfig
from rag_lab.testing import HashEmbedder

CONFIG = CorpusConfig(chunk_size=60, chunk_overlap=20, parent_size=200)


@pytest.fixture
def opened(corpus: Path, tmp_path: Path, embedder: Any) -> Any:
    def open_again(with_embedder: Any = embedder, **settings: Any) -> CorpusIndex:
        return open_index(corpus, CONFIG, with_embedder, home=tmp_path / "home", **settings)

    return open_again


def vectors_of(index: CorpusIndex) -> list[Path]:
    return [path for path in index.path.glob("searched/vectors-*") if path.is_dir()]


def test_what_is_searched_by_words_alone_has_no_vectors(opened: Any, embedder: Any, tmp_path: Path) -> None:
    index = opened()
    assert index.chunks.labels == {access_label("", ())}
    assert index.search_terms("bm25", "unicode", ["relief valve"], 1)[0][0].source == "press/relief_valve.md"
    assert not index.has_vectors
    assert vectors_of(index) == [] and embedder.seen == [] and not (tmp_path / "home/vectors.sqlite").exists()


def test_vectors_come_later_without_reading_and_splitting_again(
    opened: Any, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened()
    monkeypatch.setattr(build_index, "process", None)
    later = opened()
    assert later.path == first.path
    vectors = embedder.embed_queries(["relief valve"])
    embedder.seen.clear()
    assert later.search(vectors, 1)[0][0].source == "press/relief_valve.md"
    assert later.has_vectors and len(embedder.seen) == later.manifest.n_children
    opened().ensure_vectors()
    assert len(embedder.seen) == later.manifest.n_children


def test_models_and_stores_share_the_chunks_and_not_the_vectors(
    opened: Any, embedder: Any, other_embedder: Any
) -> None:
    indexes = [opened(), opened(other_embedder), opened(store=StoreConfig(name="exact"))]
    for index in indexes:
        index.ensure_vectors()
    assert len({index.path for index in indexes}) == 1
    assert len(vectors_of(indexes[0])) == 3
    words = [SparseSearcher(index, "bm25", "unicode").identity() for index in indexes]
    assert words[0] == words[1] == words[2]
    meanings = [str(DenseSearcher(index, embedder).identity()) for index in indexes]
    assert len(set(meanings)) == 3


def test_a_build_that_is_killed_leaves_no_vectors_and_loses_no_work(
    opened: Any, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(child_vectors.registry, "stores_of", None)
        with pytest.raises(TypeError):
            opened().ensure_vectors()
    assert vectors_of(opened()) == []
    embedder.seen.clear()
    index = opened()
    index.ensure_vectors()
    assert index.has_vectors and embedder.seen == []


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"retrieval.mode": "bm25"}, {"bm25"}),
        ({"retrieval.mode": "tfidf"}, {"tfidf"}),
        ({"retrieval.mode": "dense"}, {"vectors"}),
        ({"retrieval.mode": "hybrid"}, {"vectors", "bm25"}),
        ({"retrieval.mode": "hybrid", "retrieval.dense_weight": 0}, {"bm25"}),
        ({"retrieval.mode": "bm25", "query.hyde": "always"}, {"vectors", "bm25"}),
    ],
)
def test_the_searches_of_a_configuration_are_built_before_a_question_is_asked(
    changes: dict[str, Any], found: set[str], opened: Any
) -> None:
    index = opened()
    Pipeline.on(index, HashEmbedder(), PipelineConfig().override({"query.hyde": "none"} | changes)).prepare()
    assert {path.name.split("-")[0] for path in index.path.glob("searched/*") if path.is_dir()} == found


def test_what_the_vectors_took_is_kept_with_them_also_where_they_were_remembered(opened: Any) -> None:
    first = opened()
    first.ensure_vectors()
    took = first.price(with_vectors=True)
    assert took["chunks"] == first.manifest.n_children and took["seconds"] > 0
    for folder in vectors_of(first):
        shutil.rmtree(folder)
    again = opened()
    again.ensure_vectors()
    assert again.price(with_vectors=True)["seconds"] == pytest.approx(took["seconds"])
    by_words = again.price(with_vectors=False)
    assert (by_words["chunks"], by_words["seconds"]) == (0, None) and 0 < by_words["bytes"] < took["bytes"]


@dataclass
class ReadsWords(HashEmbedder):
    """Reads the first `most_tokens` words of a text; `counted` holds how many texts were counted at a time."""

    most_tokens: int | None = 8
    counted: list[int] = field(default_factory=list)

    def identity(self) -> Any:
        return {"provider": "words", "most": self.most_tokens}

    def text_tokens(self, texts: Any, kind: str) -> list[int]:
        self.counted.append(len(texts))
        return [len(text.split()) for text in texts]


@pytest.fixture
def opened_with(corpus: Path, tmp_path: Path) -> Any:
    def open_again(embedder: Any, **settings: int) -> CorpusIndex:
        config = CorpusConfig(chunk_size=60, chunk_overlap=0, parent_size=200).model_copy(update=settings)
        return open_index(corpus, config, embedder, home=tmp_path / "home")

    return open_again


def test_each_child_that_is_longer_is_counted_with_what_is_lost_of_it(opened_with: Any) -> None:
    index = opened_with(ReadsWords())
    lengths = {child.chunk_id: len(child.text.split()) for child in index.chunks.children()}
    longer = {name: n - 8 for name, n in lengths.items() if n > 8}
    characters = sum(len(child.text) for child in index.chunks.children())
    assert index.truncation.longer == longer != {}
    assert index.truncation.total == Truncation(
        8, len(lengths), len(longer), characters, sum(lengths.values()), sum(longer.values())
    )


def test_children_are_counted_once_for_an_index_and_again_for_another_model(opened_with: Any) -> None:
    model, other = ReadsWords(), ReadsWords(most_tokens=3)
    first = opened_with(model).truncation
    assert opened_with(model).truncation == first and len(model.counted) == 1
    assert len(opened_with(other).truncation.longer) > len(first.longer) and len(other.counted) == 1
    assert opened_with(model, chunk_size=30).truncation.total.n > first.total.n


def test_a_count_that_was_damaged_is_made_again(opened_with: Any) -> None:
    model = ReadsWords()
    index = opened_with(model)
    before = index.truncation
    (path,) = index.path.glob("searched/unread-*/unread.json")
    path.write_text(json.dumps({"total": {}, "longer": {}}))
    assert opened_with(model).truncation == before and len(model.counted) == 2


@pytest.mark.parametrize("embedder", [HashEmbedder(), ReadsWords(most_tokens=None)])
def test_of_a_model_that_does_not_say_how_much_it_reads_nothing_is_known(opened_with: Any, embedder: Any) -> None:
    index = opened_with(embedder)
    assert index.truncation is None and not list(index.path.glob("searched/unread-*"))
