"""What an embedding model never reads of the children is counted once for an index and each model."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.index.corpus_index import CorpusIndex, open_index
from rag_lab.models.truncation import Truncation
from rag_lab.testing import HashEmbedder


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
def opened(corpus: Path, tmp_path: Path) -> Any:
    def open_again(embedder: Any, **settings: int) -> CorpusIndex:
        config = CorpusConfig(chunk_size=60, chunk_overlap=0, parent_size=200).model_copy(update=settings)
        return open_index(corpus, config, embedder, home=tmp_path / "home")

    return open_again


def test_each_child_that_is_longer_is_counted_with_what_is_lost_of_it(opened: Any) -> None:
    index = opened(ReadsWords())
    lengths = {child.chunk_id: len(child.text.split()) for child in index.chunks.children()}
    longer = {name: n - 8 for name, n in lengths.items() if n > 8}
    characters = sum(len(child.text) for child in index.chunks.children())
    assert index.truncation.longer == longer != {}
    assert index.truncation.total == Truncation(
        8, len(lengths), len(longer), characters, sum(lengths.values()), sum(longer.values())
    )


def test_children_are_counted_once_for_an_index_and_again_for_another_model(opened: Any) -> None:
    model, other = ReadsWords(), ReadsWords(most_tokens=3)
    first = opened(model).truncation
    assert opened(model).truncation == first and len(model.counted) == 1
    assert len(opened(other).truncation.longer) > len(first.longer) and len(other.counted) == 1
    assert opened(model, chunk_size=30).truncation.total.n > first.total.n


def test_a_count_that_was_damaged_is_made_again(opened: Any) -> None:
    model = ReadsWords()
    index = opened(model)
    before = index.truncation
    (path,) = index.path.glob("searched/unread-*/unread.json")
    path.write_text(json.dumps({"total": {}, "longer": {}}))
    assert opened(model).truncation == before and len(model.counted) == 2


@pytest.mark.parametrize("embedder", [HashEmbedder(), ReadsWords(most_tokens=None)])
def test_of_a_model_that_does_not_say_how_much_it_reads_nothing_is_known(opened: Any, embedder: Any) -> None:
    index = opened(embedder)
    assert index.truncation is None and not list(index.path.glob("searched/unread-*"))
