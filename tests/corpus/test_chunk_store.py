"""Results at each level, against a search that scores every child of a corpus."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tolerance import FLOAT32

from rag_lab.access import access_label
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, open_index
from rag_lab.records import Hit, Level

CONFIG = CorpusConfig(chunk_size=60, chunk_overlap=20, parent_size=200)
QUERIES = ["torque of bolt M7 on machine 3", "soup at noon", "oil"]
LEVELS: list[Level] = ["child", "parent", "document"]


@pytest.fixture
def index(corpus, tmp_path, embedder):
    for number in range(8):
        lines = [f"Machine {number} part {part}: torque {number * part} Nm, bolt M{part}." for part in range(12)]
        (corpus / f"machine_{number:02}.txt").write_text("\n".join(lines))
    return open_index(corpus, CONFIG, embedder, home=tmp_path / "home")


def unit_of(child, level):
    return {"child": child.chunk_id, "parent": child.parent_id, "document": child.source}[level]


def best_by_brute_force(index, embedder, query, level):
    children = index.chunks.children()
    cosines = embedder.embed_documents([child.text for child in children]) @ embedder.embed_queries([query])[0]
    best = {}
    for child, cosine in zip(children, cosines, strict=True):
        unit = unit_of(child, level)
        best[unit] = max(best.get(unit, -1.0), float(cosine))
    return best


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("k", [1, 4, 1000])
def test_each_unit_stands_once_with_the_score_of_its_best_child(index, embedder, level, k):
    found = index.search(embedder.embed_queries(QUERIES), k, level=level)
    for query, hits in zip(QUERIES, found, strict=True):
        best = best_by_brute_force(index, embedder, query, level)
        units = [unit_of(index.chunks.child(hit.chunk_id), level) for hit in hits]
        assert len(set(units)) == len(units) == min(k, len(best))
        np.testing.assert_allclose([hit.score for hit in hits], sorted(best.values(), reverse=True)[:k], atol=FLOAT32)
        assert [best[unit] for unit in units] == pytest.approx([hit.score for hit in hits], abs=FLOAT32)
        assert len({hit.parent_id for hit in hits}) == len(hits)


def test_what_is_read_is_the_unit(index, embedder):
    vectors = embedder.embed_queries(["torque of bolt M7 on machine 3"])
    child, parent, document = (index.search(vectors, 1, level=level)[0][0] for level in LEVELS)
    assert index.text(child) == index.chunks.child(child.chunk_id).text
    assert index.text(parent) == index.chunks.parent(parent.parent_id).text
    assert index.text(document) == (index.corpus_dir / document.source).read_text()
    assert index.text(child) in index.text(parent) in index.text(document)
    assert child.chunk_id == parent.chunk_id == document.chunk_id


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["bm25", "tfidf"])
def test_words_are_searched_at_every_level(index, level, name):
    (hits,) = index.search_terms(name, "unicode", ["soup"], 5, level=level)
    assert [(hit.source, list(hit.scores)) for hit in hits] == [("canteen.txt", [name])]
    assert index.search_terms(name, "unicode", ["M7 torque"], 2, level=level)[0][0].source.startswith("machine")
    assert index.sparse(name, "unicode") is index.sparse(name, "unicode")


def test_of_a_file_with_pages_the_best_page_stands_for_it(tmp_path, embedder):
    import pymupdf

    (tmp_path / "corpus").mkdir()
    with pymupdf.open() as pdf:
        for text in ("The oven cures at 180 degrees.", "The press runs at 140 bar.", "The canteen serves soup."):
            pdf.new_page().insert_text((72, 72), text)
        pdf.save(tmp_path / "corpus" / "plant.pdf")
    index = open_index(tmp_path / "corpus", CONFIG, embedder, home=tmp_path / "home")
    (hits,) = index.search(embedder.embed_queries(["At how many bar does the press run?"]), 5, level="document")
    assert [(hit.source, hit.page) for hit in hits] == [("plant.pdf", 2)]
    assert index.text(hits[0]).strip() == "The press runs at 140 bar."


SMALL = CorpusConfig(chunk_size=60, chunk_overlap=0, parents="none")


@pytest.fixture
def small_index(corpus: Path, tmp_path: Path, embedder: Any) -> CorpusIndex:
    """Of two manuals one names pump and torque far apart, the other in one line beside much else."""
    filler = "\n".join(f"Station {number} is cleaned in week {number}." for number in range(30))
    (corpus / "apart.md").write_text("The pump stands in hall 4 beside a tank.\n\nIts torque is 40 Nm, said twice: 40.")
    (corpus / "long.md").write_text(f"{filler}\n\nPump torque.\n\n{filler}")
    (tmp_path / "attributes.yaml").write_text("- {files: apart.md, permissions: [staff]}\n")
    (tmp_path / "questions.jsonl").write_text("")
    return open_index(corpus, SMALL, embedder, home=tmp_path / "home")


def found(small_index: CorpusIndex, text: str, k: int = 5, level: Level = "child", **changes: Any) -> list[Hit]:
    (hits,) = small_index.search_terms("tfidf", "unicode", [text], k, changes.get("allowed"), level, "document")
    return hits


def test_a_file_counts_as_a_whole_and_gives_its_best_child(small_index: CorpusIndex) -> None:
    (by_child,) = small_index.search_terms("tfidf", "unicode", ["pump torque"], 1, None, "child")
    assert by_child[0].source == "long.md"
    first, second = found(small_index, "pump torque")
    assert (first.source, second.source) == ("apart.md", "long.md") and first.score > second.score
    assert small_index.text(second) == "Pump torque." and second.scores == {"tfidf": second.score}


def test_each_file_is_found_once_at_every_level(small_index: CorpusIndex) -> None:
    for level in ("child", "parent", "document"):
        sources = [hit.source for hit in found(small_index, "the station pump is cleaned", level=level)]
        assert len(sources) == len(set(sources)) > 1
    (whole,) = found(small_index, "canteen soup", level="document")
    assert small_index.text(whole) == "The canteen opens at noon and serves soup."
    assert found(small_index, "pump torque", k=1)[0].source == "apart.md"


def test_what_the_asker_may_not_see_is_not_found(small_index: CorpusIndex) -> None:
    public = frozenset({access_label("", ())})
    assert [hit.source for hit in found(small_index, "pump torque", allowed=public)] == ["long.md"]


def test_nothing_shared_is_nothing_found(small_index: CorpusIndex) -> None:
    assert found(small_index, "zebra quagga") == []
