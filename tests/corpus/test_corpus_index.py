import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.vectorstores import InMemoryVectorStore
from tolerance import FLOAT32

from rag_lab.access import access_label
from rag_lab.corpus import build_index, folder
from rag_lab.corpus.chunks import split
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, locate_all, open_index
from rag_lab.corpus.folder import load_folder
from rag_lab.errors import DatasetError
from rag_lab.models.remembered_vectors import RememberedEmbedder
from rag_lab.records import Evidence, Question
from rag_lab.stores.config import STORE_NAMES, STORES, StoreConfig
from rag_lab.stores.langchain import LangChainStore, PrecomputedEmbeddings

CONFIG = CorpusConfig(chunk_size=60, chunk_overlap=20, parent_size=200)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def fill(corpus: Path, n_files: int = 12) -> None:
    """Files with several parents of several children each."""
    for number in range(n_files):
        lines = [f"Machine {number} part {part}: torque {number * part} Nm, bolt M{part}." for part in range(12)]
        (corpus / f"machine_{number:02}.txt").write_text("\n".join(lines))


def test_the_nearest_parents_come_first_and_once(corpus: Path, home: Path, embedder: Any) -> None:
    index = open_index(corpus, CONFIG, embedder, home=home)
    (hits,) = index.search(embedder.embed_queries(["At how many bar does the relief valve open?"]), 3)
    assert hits[0].source == "press/relief_valve.md"
    assert len({hit.parent_id for hit in hits}) == 3
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert index.chunks.child(hits[0].chunk_id).parent_id == hits[0].parent_id
    assert "275 bar" in index.chunks.parent(hits[0].parent_id).text
    assert hits[0].scores == {"dense": hits[0].score}


def brute_force(corpus: Path, embedder: Any, queries: Sequence[str], k: int) -> list[list[tuple[str, float]]]:
    """Score every child, keep the best of each parent, sort."""
    children = split(load_folder(corpus).documents, CONFIG).children
    cosines = embedder.embed_queries(queries) @ embedder.embed_documents([child.text for child in children]).T
    result = []
    for row in cosines:
        best: dict[str, float] = {}
        for child, cosine in zip(children, row, strict=True):
            best[child.parent_id] = max(best.get(child.parent_id, -1.0), float(cosine))
        result.append(sorted(best.items(), key=lambda item: -item[1])[:k])
    return result


@pytest.mark.parametrize("k", [1, 5, 30, 1000])
def test_search_equals_scoring_every_child(corpus: Path, home: Path, embedder: Any, k: int) -> None:
    fill(corpus)
    index = open_index(corpus, CONFIG, embedder, home=home)
    queries = ["torque of bolt M7 on machine 3", "soup at noon", "oil"]
    expected = brute_force(corpus, embedder, queries, k)
    for hits, best in zip(index.search(embedder.embed_queries(queries), k), expected, strict=True):
        assert len(hits) == len(best) == min(k, index.manifest.n_parents)
        np.testing.assert_allclose([hit.score for hit in hits], [score for _, score in best], atol=FLOAT32)
        scores = dict(best)
        assert all(scores.get(hit.parent_id, hit.score) == pytest.approx(hit.score, abs=FLOAT32) for hit in hits)


def test_no_queries_give_no_hits(corpus: Path, home: Path, embedder: Any) -> None:
    assert open_index(corpus, CONFIG, embedder, home=home).search(np.zeros((0, 256), np.float32), 3) == []


def test_counts_and_unknown_ids(corpus: Path, home: Path, embedder: Any) -> None:
    fill(corpus, 2)
    index = open_index(corpus, CONFIG, embedder, home=home)
    chunks = split(load_folder(corpus).documents, CONFIG)
    assert (index.manifest.n_files, index.manifest.n_documents) == (5, 5)
    assert (index.manifest.n_parents, index.manifest.n_children) == (len(chunks.parents), len(chunks.children))
    assert [index.chunks.child(child.chunk_id) for child in chunks.children] == list(chunks.children)
    with pytest.raises(KeyError):
        index.chunks.parent("nothing")


def test_an_unchanged_corpus_is_neither_loaded_nor_embedded_again(
    corpus: Path, home: Path, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (corpus / "empty.txt").touch()
    first = open_index(corpus, CONFIG, embedder, home=home)
    first.ensure_vectors()
    embedder.seen.clear()
    monkeypatch.setattr(build_index, "process", None)
    (corpus / "new.pptx").touch()
    again = open_index(corpus, CONFIG, embedder, home=home)
    again.ensure_vectors()
    assert embedder.seen == []
    assert again.digest == first.digest
    assert [Path(problem.path).name for problem in first.problems] == ["empty.txt"]
    assert [Path(problem.path).name for problem in again.problems] == ["new.pptx", "empty.txt"]


def test_a_manifest_of_an_earlier_release_is_read(corpus: Path, home: Path, embedder: Any) -> None:
    (corpus / "empty.txt").touch()
    index = open_index(corpus, CONFIG, embedder, home=home)
    path = index.path / "index.json"
    manifest = json.loads(path.read_text())
    assert manifest["problems"] == [{"source": "empty.txt", "reason": index.problems[0].reason}]
    del manifest["page_starts"], manifest["left_out"]  # which stood there only where something was in them
    path.write_text(json.dumps(manifest))
    again = CorpusIndex(index.path, corpus, index.vectors)
    assert again.problems == index.problems and again.manifest == index.manifest


def test_after_a_change_only_new_texts_are_embedded(corpus: Path, home: Path, embedder: Any) -> None:
    first = open_index(corpus, CONFIG, embedder, home=home)
    first.ensure_vectors()
    embedder.seen.clear()
    (corpus / "canteen.txt").write_text("The canteen is closed.")
    second = open_index(corpus, CONFIG, embedder, home=home)
    second.ensure_vectors()
    assert embedder.seen == ["The canteen is closed."]
    assert second.digest != first.digest
    assert second.search(embedder.embed_queries(["canteen"]), 1)[0][0].source == "canteen.txt"
    assert first.chunks.parent("canteen.txt#0-42").text.startswith("The canteen opens")


def test_the_digest_follows_files_and_parameters(corpus: Path, home: Path, embedder: Any, tmp_path: Path) -> None:
    digests = {
        open_index(corpus, CONFIG, embedder, home=home).digest,
        open_index(corpus, CorpusConfig(), embedder, home=home).digest,
    }
    (corpus / "canteen.txt").rename(corpus / "kitchen.txt")
    digests.add(open_index(corpus, CONFIG, embedder, home=home).digest)
    assert len(digests) == 3
    corpus.rename(tmp_path / "moved")
    assert open_index(tmp_path / "moved", CONFIG, embedder, home=home).digest in digests


def test_an_embedder_that_remembers_is_used_as_it_is(corpus: Path, home: Path, tmp_path: Path, embedder: Any) -> None:
    open_index(corpus, CONFIG, RememberedEmbedder(embedder, tmp_path / "own.sqlite"), home=home).ensure_vectors()
    assert (tmp_path / "own.sqlite").exists() and not (home / "vectors.sqlite").exists()


def test_a_failed_build_leaves_nothing(
    corpus: Path, home: Path, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(build_index, "write_chunks", None)
        with pytest.raises(TypeError):
            open_index(corpus, CONFIG, embedder, home=home)
    assert [path.suffix for path in (home / "indexes").iterdir()] == [".lock"]
    assert open_index(corpus, CONFIG, embedder, home=home).manifest.n_documents == 3


def test_what_a_killed_build_left_is_swept_away(corpus: Path, home: Path, embedder: Any) -> None:
    index = open_index(corpus, CONFIG, embedder, home=home)
    leftover = index.path.with_name(f"{index.digest}.partial-0")
    index.path.rename(leftover)
    (leftover / "index.json").unlink()
    open_index(corpus, CONFIG, embedder, home=home)
    assert not leftover.exists()


def test_a_file_that_changes_while_it_is_read_is_an_error(
    corpus: Path, home: Path, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "file_digests", lambda files, cache: dict.fromkeys(files, "old"))
    with pytest.raises(DatasetError, match="changed while they were read"):
        open_index(corpus, CONFIG, embedder, home=home)


def test_an_index_that_many_want_at_once_is_built_once(corpus: Path, home: Path, embedder: Any) -> None:
    fill(corpus)

    def opened(_: int) -> CorpusIndex:
        index = open_index(corpus, CONFIG, embedder, home=home)
        index.ensure_vectors()
        return index

    with ThreadPoolExecutor(4) as pool:
        indexes = list(pool.map(opened, range(4)))
    assert len(embedder.seen) == len(set(embedder.seen)) == indexes[0].manifest.n_children
    query = embedder.embed_queries(["relief valve"])
    assert all(index.search(query, 2) == indexes[0].search(query, 2) for index in indexes)


def question(name: str, *evidence: Evidence) -> Question:
    return Question(name, "?", evidence=evidence)


def test_evidence_is_located_and_what_is_missing_is_reported(corpus: Path, home: Path, embedder: Any) -> None:
    index: CorpusIndex = open_index(corpus, CONFIG, embedder, home=home)
    questions, problems = locate_all(
        index,
        [
            question("q1", Evidence("press/oil.txt", None, "every 4,000   hours")),
            question("q2", Evidence("nothing.txt"), Evidence("canteen.txt")),
            question("q3", Evidence("canteen.txt", None, "serves steak")),
        ],
    )
    assert [item.question_id for item in questions] == ["q1", "q2", "q3"]
    assert (questions[0].evidence[0].start, questions[0].evidence[0].end) == (25, 42)
    oil = Evidence("press/oil.txt", None, "every 4,000 hours")
    assert index.locate(oil)[0].start == 25
    assert index.locate(oil)[0] is index.locate(oil)[0]  # looked for once, however often a question is repeated
    assert questions[1].evidence[0].context == "" and "soup" in questions[1].evidence[1].context
    assert questions[2].evidence[0].start is None
    assert [str(problem) for problem in problems] == [
        f"{corpus}/nothing.txt: evidence of question 'q2': no such file was read into the corpus; "
        "correct the name or add the file.",
        f"{corpus}/canteen.txt: evidence of question 'q3': the quote 'serves steak' does not stand on the file; "
        "correct the quote or the page.",
    ]


def test_every_store_finds_the_same_parents(corpus: Path, home: Path, embedder: Any) -> None:
    fill(corpus)
    queries = embedder.embed_queries(["torque of machine 3", "bolt M7 of part 7", "relief valve"])
    indexes = [
        open_index(corpus, CONFIG, embedder, home=home, store=StoreConfig(name=name))
        for name in STORE_NAMES
        if find_spec(STORES[name].needs)
    ]
    assert len({index.digest for index in indexes}) == 1
    assert len({str(index.vectors_identity) for index in indexes}) == len(indexes)
    expected = indexes[0].search(queries, 5)
    assert all(index.search(queries, 5) == expected for index in indexes)


def test_a_store_of_the_users_own_is_searched_in_place_of_the_index(corpus: Path, home: Path, embedder: Any) -> None:
    fill(corpus)
    index = open_index(corpus, CONFIG, embedder, home=home)
    queries = embedder.embed_queries(["torque of machine 3"])
    mine = LangChainStore.fill(index.vector_store, InMemoryVectorStore(PrecomputedEmbeddings(index.vector_store)))
    other = index.searched_in(mine, "mine")
    assert other.search(queries, 4) == index.search(queries, 4)
    assert other.vectors_identity != index.vectors_identity, (
        "or remembered hits of one would stand for those of the other"
    )
    assert other.problems == index.problems


def test_only_labels_that_are_allowed_are_searched(corpus: Path, home: Path, embedder: Any) -> None:
    index = open_index(corpus, CONFIG, embedder, home=home)
    queries = embedder.embed_queries(["oil"])
    assert index.chunks.labels == {access_label("", ())}
    assert index.search(queries, 3, index.chunks.labels) == index.search(queries, 3)
    assert index.search(queries, 3, frozenset()) == [[]]
