"""What stands before a chunk is searched and embedded with it, and is in no text that is shown, read or cited."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_lab.config import PipelineConfig
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.corpus_index import CorpusIndex, open_index
from rag_lab.errors import ConfigError
from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.pipeline import Pipeline
from rag_lab.records import Evidence
from rag_lab.stages.retrieval.search import DenseSearcher, SparseSearcher
from rag_lab.stages.retrieval.select import Select, diversified
from rag_lab.stores.config import StoreConfig
from rag_lab.testing import HashEmbedder, ScriptedChat

TEXT = (
    "# Press\n\nIt runs at 140 bar.\n\n## Guides\n\nThey take grease NLGI 2.\n\n## Filter\n\nIt is changed monthly.\n"
)
DOWN = ChatReply(error="status 500", transient=True)


@pytest.fixture
def opened(tmp_path: Path, embedder: Any) -> Any:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "press.md").write_text(TEXT)
    (folder / "canteen.txt").write_text("It opens at noon and serves soup.\n")

    def index(kind: str = "none", chat: Any = None, embedder: Any = embedder, **options: Any) -> CorpusIndex:
        home = tmp_path / "home"
        config = CorpusConfig(chunk_size=50, chunk_overlap=0, parents="section", context=kind)
        return open_index(folder, config, embedder, home=home, writer=chat, **options)

    return index


def searched(index: CorpusIndex) -> list[str]:
    return index.searched_texts(index.chunks.children())


def test_headings_and_file_names_stand_before_what_is_searched_and_in_nothing_else(opened: Any, embedder: Any) -> None:
    plain, heading, file = (opened(kind) for kind in ("none", "heading", "file"))
    assert plain.path == heading.path == file.path
    children = plain.chunks.children()
    assert searched(plain) == [child.text for child in children]
    grease = next(place for place, child in enumerate(children) if "NLGI" in child.text)
    assert searched(heading)[grease] == f"Press > Guides\n\n{children[grease].text}"
    assert searched(file)[grease] == f"press.md\n\n{children[grease].text}"
    assert searched(heading)[0] == children[0].text  # canteen.txt has no headings
    (hits,) = heading.search_terms("bm25", "unicode", ["press grease"], 1)
    assert heading.text(hits[0]) == TEXT[hits[0].start : hits[0].end]
    located, reason = heading.locate(Evidence("press.md", quote="They take grease NLGI 2."))
    assert not reason and TEXT[located.start : located.end] == "They take grease NLGI 2."
    (by_name,) = file.search_terms("bm25", "unicode", ["canteen"], 1)
    assert by_name[0].source == "canteen.txt"
    assert plain.search_terms("bm25", "unicode", ["canteen"], 1) == [[]]


def test_vectors_are_those_of_the_searched_texts_and_known_ones_are_not_made_again(opened: Any, embedder: Any) -> None:
    opened("none").ensure_vectors()
    embedder.seen.clear()
    heading = opened("heading")
    assert not heading.has_vectors
    heading.ensure_vectors()
    assert embedder.seen and all(text.startswith("Press") for text in embedder.seen)
    embedder.seen.clear()
    opened("heading").ensure_vectors()
    (hits,) = heading.search(embedder.embed_queries(["guides"]), 2, level="child")
    embedder.seen.clear()
    diversified(heading, heading.vectors.embedder, [hits], [[1.0, 0.5]], 2, 0.5)
    assert embedder.seen == []  # hits are compared by the vectors that found them


def test_each_context_is_another_search_and_what_compares_no_children_stays(opened: Any, embedder: Any) -> None:
    indexes = [opened(kind) for kind in ("none", "heading", "file")]
    for make in (
        lambda index: DenseSearcher(index, embedder),
        lambda index: SparseSearcher(index, "bm25", "unicode"),
        lambda index: Select(index, embedder, "none", 0.5, 4),
    ):
        assert len({str(make(index).identity()) for index in indexes}) == 3
    assert len({str(Select(index, None, "knee", 0.5, 4).identity()) for index in indexes}) == 1
    assert "context" not in str(SparseSearcher(indexes[0], "bm25", "unicode").identity())


def test_a_model_writes_a_sentence_once_for_a_passage_of_a_document(opened: Any) -> None:
    chat = ScriptedChat(lambda request: f" Of the press:\n {request.messages[-1].content[-9:]}")
    index = opened("llm", chat)
    children = index.chunks.children()
    texts = searched(index)
    assert texts[-1] == f"Of the press: {' '.join(children[-1].text[-9:].split())}\n\n{children[-1].text}"
    asked = [
        request.messages[-1].content for request in chat.requests if "press" in request.messages[-1].content.lower()
    ]
    assert len(chat.requests) == len(children)
    assert all(one.startswith(f"Document:\n{TEXT.strip()}\n\nPassage of this document:\n") for one in asked)
    again = opened("llm", chat)
    assert searched(again) == texts and len(chat.requests) == len(children)
    assert index.problems == () and "for_now" not in str(index.contexts.identity())


def test_a_long_document_is_shown_in_parts_around_the_passage(opened: Any, tmp_path: Path) -> None:
    sentences = [f"Machine {number} has a torque of {number * 7} Nm." for number in range(300)]
    (tmp_path / "corpus/long.txt").write_text("\n".join(sentences))
    chat = ScriptedChat(lambda request: "A machine.", context_tokens=700)
    index = opened("llm", chat)
    searched(index)
    shown = [request.messages[-1].content.split("\n\nPassage of this document:\n") for request in chat.requests]
    long = [(document, passage) for document, passage in shown if "Machine" in passage]
    assert 2 < len({document for document, _ in long}) < len(long) / 4
    assert all(passage in document for document, passage in long)
    assert all(chat.count_tokens(document) < 700 - 128 for document, _ in shown)


def test_where_a_call_fails_the_headings_stand_and_the_vectors_are_for_now(opened: Any) -> None:
    chat = ScriptedChat(lambda request: DOWN if "NLGI" in request.messages[-1].content[-60:] else "S.")
    poor = opened("llm", chat)
    poor.ensure_vectors()
    grease = next(text for text in searched(poor) if "NLGI" in text)
    assert grease.startswith("Press > Guides\n\n")
    (problem,) = poor.problems
    assert "1 chunks are searched with the path of headings" in str(problem) and "status 500" in str(problem)
    chat.script, n_asked = (lambda request: "T."), len(chat.requests)
    whole = opened("llm", chat)
    assert not whole.has_vectors
    whole.ensure_vectors()
    assert len(chat.requests) == n_asked + 1 and whole.problems == ()
    assert next(text for text in searched(whole) if "NLGI" in text).startswith("T.")


def test_a_plan_asks_no_model(opened: Any) -> None:
    chat = ScriptedChat([])
    planned = opened("llm", chat, asks=False)
    assert any(text.startswith("Press > Guides") for text in searched(planned))
    assert planned.truncation is None and planned.problems == () and chat.requests == []


def test_a_pipeline_has_the_sentences_written_by_its_model_of_understanding(opened: Any, tmp_path: Path) -> None:
    opened()
    requests: list[ChatRequest] = []
    chat = ScriptedChat(lambda request: requests.append(request) or "Lunch.")
    config = PipelineConfig().override({"corpus.context": "llm", "retrieval.mode": "bm25", "answer.name": "none"})
    pipeline = Pipeline(tmp_path / "corpus", config, home=tmp_path / "home")
    (trace,) = [pipeline.replace(understanding_model=chat, embedding_model=HashEmbedder()).ask("lunch")]
    assert {hit.source for hit in trace.ranked} == {"canteen.txt", "press.md"}
    assert len(requests) == len(pipeline.replace(understanding_model=chat).index.chunks.children())


def test_a_row_of_a_sheet_is_a_chunk_that_is_searched_with_the_header(tmp_path: Path, embedder: Any) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "torque.csv").write_text("Bolt,Torque Nm\nM6,9\nM8,22\nM10,44\n")
    (folder / "notes.md").write_text("| Bolt | Nm |\n| --- | --- |\n| M6 | 9 |\n| M8 | 22 |\n")
    config = CorpusConfig(sheet_rows="one", context="file")
    index = open_index(folder, config, embedder, home=tmp_path / "home")
    rows = [child for child in index.chunks.children() if child.source == "torque.csv"]
    assert [row.text for row in rows][1:] == ["| M6 | 9 |", "| M8 | 22 |", "| M10 | 44 |"]
    text = index.chunks.document("torque.csv", None).text
    assert rows[0].text == text[: rows[1].start].strip() and all(text[row.start : row.end] == row.text for row in rows)
    before = index.searched_texts(rows)
    assert before[0] == f"torque.csv\n\n{rows[0].text}"
    assert before[3] == "torque.csv\n\n| Bolt | Torque Nm |\n\n| M10 | 44 |"
    assert len(index.chunks.children()) == 5  # a table of a text is cut as the text is
    (hits,) = index.search_terms("bm25", "unicode", ["torque M8"], 1, level="child")
    located, reason = index.locate(Evidence("torque.csv", quote="M8 | 22"))
    assert index.text(hits[0]) == "| M8 | 22 |" and not reason and rows[2].start <= located.start < rows[2].end
    plain = open_index(folder, CorpusConfig(), embedder, home=tmp_path / "home")
    assert len(plain.chunks.children()) == 2 and plain.path != index.path


class Late(HashEmbedder):
    """The vector of a span is that of its first word, beside which the first word of its document stands."""

    late_problem = ""

    def embed_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> Any:
        self.documents += [text]
        return self._embed([f"{text.split()[1]} {text[start:end].split()[0]}" for start, end in spans])


def test_late_chunks_are_embedded_within_their_document_once_and_words_are_searched_as_they_are(opened: Any) -> None:
    late = Late()
    plain, index = opened("none", embedder=late), opened("late", embedder=late)
    assert index.path == plain.path and searched(index) == searched(plain)
    index.ensure_vectors()
    assert late.documents == ["It opens at noon and serves soup.", TEXT.strip()]
    opened("late", embedder=late, store=StoreConfig(name="exact")).ensure_vectors()
    assert len(late.documents) == 2  # remembered by document and span
    (hits,) = index.search(late.embed_queries(["opens It"]), 1, level="child")
    assert hits[0].source == "canteen.txt" and hits[0].score > 0.99
    words = [SparseSearcher(one, "bm25", "unicode").identity() for one in (plain, index)]
    meanings = [DenseSearcher(one, late).identity() for one in (plain, index)]
    assert words[0] == words[1] and meanings[0] != meanings[1]
    with pytest.raises(ConfigError, match="gives no vectors of tokens: choose minilm"):
        opened("late", embedder=HashEmbedder(7)).ensure_vectors()
