"""Results at each level, against a search that scores every child of a corpus."""

import numpy as np
import pytest
from tolerance import FLOAT32

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import open_index
from rag_lab.records import Level

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
