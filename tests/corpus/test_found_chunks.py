"""TF-IDF of whole files: what a question shares with a file as a whole, and the child that is handed on for it."""

from pathlib import Path
from typing import Any

import pytest

from rag_lab.access import access_label
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, open_index
from rag_lab.corpus.found_chunks import search_files
from rag_lab.records import Hit, Level

SMALL = CorpusConfig(chunk_size=60, chunk_overlap=0, parents="none")


@pytest.fixture
def index(corpus: Path, tmp_path: Path, embedder: Any) -> CorpusIndex:
    """Of two manuals one names pump and torque far apart, the other in one line beside much else."""
    filler = "\n".join(f"Station {number} is cleaned in week {number}." for number in range(30))
    (corpus / "apart.md").write_text("The pump stands in hall 4 beside a tank.\n\nIts torque is 40 Nm, said twice: 40.")
    (corpus / "long.md").write_text(f"{filler}\n\nPump torque.\n\n{filler}")
    (tmp_path / "attributes.yaml").write_text("- {files: apart.md, permissions: [staff]}\n")
    (tmp_path / "questions.jsonl").write_text("")
    return open_index(corpus, SMALL, embedder, home=tmp_path / "home")


def found(index: CorpusIndex, text: str, k: int = 5, level: Level = "child", **changes: Any) -> list[Hit]:
    (hits,) = search_files(index, "tfidf", "unicode", [text], k, changes.get("allowed"), level)
    return hits


def test_a_file_counts_as_a_whole_and_gives_its_best_child(index: CorpusIndex) -> None:
    (by_child,) = index.search_terms("tfidf", "unicode", ["pump torque"], 1, None, "child")
    assert by_child[0].source == "long.md"
    first, second = found(index, "pump torque")
    assert (first.source, second.source) == ("apart.md", "long.md") and first.score > second.score
    assert index.text(second) == "Pump torque." and second.scores == {"tfidf": second.score}


def test_each_file_is_found_once_at_every_level(index: CorpusIndex) -> None:
    for level in ("child", "parent", "document"):
        sources = [hit.source for hit in found(index, "the station pump is cleaned", level=level)]
        assert len(sources) == len(set(sources)) > 1
    (whole,) = found(index, "canteen soup", level="document")
    assert index.text(whole) == "The canteen opens at noon and serves soup."
    assert found(index, "pump torque", k=1)[0].source == "apart.md"


def test_what_the_asker_may_not_see_is_not_found(index: CorpusIndex) -> None:
    public = frozenset({access_label("", ())})
    assert [hit.source for hit in found(index, "pump torque", allowed=public)] == ["long.md"]


def test_nothing_shared_is_nothing_found(index: CorpusIndex) -> None:
    assert found(index, "zebra quagga") == []
