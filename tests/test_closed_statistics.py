"""Ranks, scores and order that a restricted asker is shown are those of a corpus without the closed documents."""

import json
from dataclasses import dataclass

import pytest
import yaml
from pydantic import TypeAdapter

from rag_lab.config import PipelineConfig
from rag_lab.pipeline import Pipeline
from rag_lab.records import Trace
from rag_lab.stores.config import STORE_NAMES, STORES
from rag_lab.testing import HashEmbedder

ASKED = "Which supplier delivers the zirconium seal of the press?"
OPEN = {
    f"open{number}.txt": f"The press has {number} seals. A supplier delivers oil. "
    + f"Guide {number} is greased. " * number
    for number in range(1, 7)
}
CLOSED = {
    f"closed{number}.txt": f"The zirconium supplier of contract {number} delivers. " + "Price and seal. " * 9 * number
    for number in range(8)
}
BASE = {
    "corpus.chunk_size": 80,
    "corpus.chunk_overlap": 10,
    "retrieval.base_k": 4,
    "rerank.name": "none",
    "answer.name": "none",
    "query.rewrite": "none",
    "query.hyde": "none",
}


@dataclass(frozen=True)
class Rare:
    """A search of one's own that weighs words by how few texts hold them."""

    version = 1

    def build(self, chunks):
        texts = {chunk.chunk_id: set(chunk.text.lower().split()) for chunk in chunks}

        def search(query, k):
            rare = {word: 1 / (1 + sum(word in words for words in texts.values())) for word in query.lower().split()}
            scored = [(name, sum(rare[word] for word in rare if word in words)) for name, words in texts.items()]
            return sorted(scored, key=lambda item: (-item[1], item[0]))[:k]

        return search


def shown(folder, files, changes, may_see=(), **modules):
    """Return all that a trace says of what was found, for somebody with these permissions."""
    corpus = folder / "corpus"
    corpus.mkdir(parents=True)
    for name, text in files.items():
        (corpus / name).write_text(text)
    if files.keys() & CLOSED.keys():
        (folder / "attributes.yaml").write_text(yaml.safe_dump([{"files": "closed*", "permissions": ["staff"]}]))
    config = PipelineConfig().override(BASE | changes)
    pipeline = Pipeline(folder, config, home=folder / "home", progress=False)
    pipeline = pipeline.replace(embedding_model=HashEmbedder(), **modules)
    trace = json.loads(TypeAdapter(Trace).dump_json(pipeline.ask(ASKED, may_see)))
    found = {name: trace[name] for name in ("hits", "base_hits", "candidates", "ranked", "passages")}
    assert trace["base_hits"]
    return found


def same_without_the_closed(tmp_path, changes, **modules):
    with_closed = shown(tmp_path / "all", OPEN | CLOSED, changes, **modules)
    assert "closed" not in json.dumps(with_closed)
    return with_closed == shown(tmp_path / "open", OPEN, changes, **modules)


@pytest.mark.parametrize("level", ["child", "document"])
@pytest.mark.parametrize("mode", ["dense", "bm25", "tfidf", "hybrid", "multi", "rrf"])
def test_nothing_that_a_search_shows_is_moved_by_closed_documents(tmp_path, mode, level):
    assert same_without_the_closed(tmp_path, {"store.name": "exact", "retrieval.mode": mode, "retrieval.level": level})


def test_nor_where_whole_files_are_compared_or_scores_are_normalized(tmp_path):
    changes = {"store.name": "exact", "retrieval.mode": "multi", "retrieval.units": "document"}
    assert same_without_the_closed(tmp_path, changes | {"retrieval.normalization": "z_score"})


@pytest.mark.parametrize("store", STORE_NAMES)
def test_nor_in_any_store(tmp_path, store):
    pytest.importorskip(STORES[store].needs)
    assert same_without_the_closed(tmp_path, {"store.name": store, "retrieval.mode": "dense"})


def test_nor_by_a_search_of_ones_own_that_is_built(tmp_path):
    assert same_without_the_closed(tmp_path, {"store.name": "exact"}, search=Rare())


def test_who_may_see_all_of_them_has_the_scores_of_all(tmp_path):
    changes = {"store.name": "exact", "retrieval.mode": "multi"}
    everything = shown(tmp_path / "all", OPEN | CLOSED, changes, may_see=None)
    assert everything == shown(tmp_path / "staff", OPEN | CLOSED, changes, may_see=("staff",))
    assert everything != shown(tmp_path / "public", OPEN | CLOSED, changes)
