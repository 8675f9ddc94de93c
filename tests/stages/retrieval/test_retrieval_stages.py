"""A search of one's own is held to what the asker may see, to the level and to k; so are LangChain's retrievers."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import yaml
from small_dataset import write_dataset

import rag_lab as rl
from rag_lab.config import PipelineConfig
from rag_lab.experiment.forecast.work import Tally, dry_traces, walk
from rag_lab.models import shared
from rag_lab.records import Question
from rag_lab.testing import HashEmbedder, ScriptedChat

PLAIN = {"retrieval.mode": "dense", "answer.name": "none", "store.name": "exact"}
REAL = shared.embedder
SMALL = {"corpus.chunk_size": 60, "corpus.chunk_overlap": 10}


@pytest.fixture
def pipeline(tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "embedder", lambda spec: HashEmbedder())
    monkeypatch.setattr(shared, "chat_model", lambda spec, purpose="": ScriptedChat(lambda request: "{}"))
    folder = write_dataset(tmp_path)
    (folder / "attributes.yaml").write_text(yaml.safe_dump([{"files": "canteen.txt", "permissions": ["office"]}]))
    return rl.Pipeline(folder, PipelineConfig().override(PLAIN | SMALL), home=tmp_path / "home", progress=False)


@dataclass(frozen=True)
class AllOf:
    """Finds every child, in the order of the corpus; counts how often it is built."""

    version: ClassVar[int] = 1
    built: ClassVar[list] = []

    def build(self, chunks):
        self.built.append(len(chunks))
        return lambda query, k: [chunk.chunk_id for chunk in chunks][:k]


def test_it_is_built_once_for_who_may_see_the_same_and_brings_k_units_of_the_level_that_the_asker_may_see(pipeline):
    AllOf.built.clear()
    mine = pipeline.replace(search=AllOf()).set({"retrieval.level": "document", "retrieval.base_k": 3})
    outsider = [mine.ask(text, may_see=()) for text in ("bar?", "oven?")][-1]
    assert sorted(hit.source for hit in outsider.hits["AllOf()"]) == ["notes/shift.txt", "oven.txt", "press.md"]
    insider = mine.ask("oven?")
    assert len(insider.base_hits) == 3 and insider.base_hits[0].source == "canteen.txt"
    assert AllOf.built == [pipeline.index.manifest.n_children - 2, pipeline.index.manifest.n_children]


def test_unknown_results_say_so_and_a_named_search_joins_ours(pipeline, monkeypatch, tmp_path):
    (tmp_path / "mine.py").write_text("def find(query, k):\n    return [('no such text', 1.0)]\n")
    monkeypatch.setenv("RAG_LAB_MODULES", str(tmp_path))
    trace = pipeline.set("retrieval.mode", "bm25+mine:find").ask("oven?")
    assert "returned 'no such text', which is no chunk of this corpus" in trace.failure.reason
    (tmp_path / "mine.py").write_text("def find(query, k):\n    return ['On Fridays there is fish.']\n")
    trace = pipeline.set("retrieval.mode", "bm25+mine:find").ask("oven?")
    assert {"bm25", "mine:find"} <= set(trace.hits)
    assert {"canteen.txt", "oven.txt"} <= {hit.source for hit in trace.base_hits}


def test_a_dry_run_calls_nothing_and_says_that_it_does_not_know(pipeline):
    calls = []

    def find(query, k):
        calls.append(query)
        return []

    tally = Tally()
    pipeline, asked = pipeline.replace(search=find), [Question("q", "oven?")]
    dry_traces(pipeline, asked, 0, walk(pipeline, asked, set(), lambda _: ()), tally)
    (work,) = tally.work
    assert calls == []
    assert (work.unit, work.n, work.cost_usd, work.minutes) == ("question", 1, None, None)


def test_a_pipeline_is_a_retriever_and_a_retriever_is_a_search(pipeline):
    bm25 = pipeline.set("retrieval.mode", "bm25")
    ours = bm25.ask("What does alarm A7 of the oven mean?", may_see=())
    retriever = bm25.as_retriever(may_see=())
    documents = retriever.invoke("What does alarm A7 of the oven mean?")
    assert [document.metadata["score"] for document in documents] == [hit.score for hit in ours.ranked]
    assert documents[0].metadata["trace"].ranked == ours.ranked
    again = pipeline.replace(search=retriever).ask("What does alarm A7 of the oven mean?")
    assert [hit.parent_id for hit in again.ranked] == [hit.parent_id for hit in ours.ranked]


def test_parent_document_retriever_finds_what_ours_does_on_the_same_children(pipeline, monkeypatch):
    classic = pytest.importorskip("langchain_classic.retrievers")
    from langchain_core.documents import Document
    from langchain_core.stores import InMemoryStore
    from langchain_core.vectorstores import InMemoryVectorStore

    monkeypatch.setattr(shared, "embedder", REAL)  # of which no two cosines are equal
    embedder = REAL(pipeline.config.models.embedding)
    index, vectors, parents = pipeline.index, InMemoryVectorStore(theirs_of(embedder)), InMemoryStore()
    children = index.chunks.children()
    vectors.add_documents([Document(c.text, metadata={"doc_id": c.parent_id}) for c in children])
    parents.mset([(c.parent_id, Document(index.chunks.parent(c.parent_id).text)) for c in children])
    theirs = classic.ParentDocumentRetriever(
        vectorstore=vectors, docstore=parents, child_splitter=_splitter(), search_kwargs={"k": 4}
    )
    for question in pipeline.dataset.questions:
        ours = pipeline.ask(question.text)
        mine = pipeline.replace(search=theirs).ask(question.text)
        assert mine.failure is None
        assert [hit.parent_id for hit in mine.ranked] == [hit.parent_id for hit in ours.ranked]


def theirs_of(embedder):
    """Our embedder as LangChain's."""
    from langchain_core.embeddings import Embeddings

    class Theirs(Embeddings):
        def embed_documents(self, texts):
            return embedder.embed_documents(texts).tolist()

        def embed_query(self, text):
            return embedder.embed_queries([text])[0].tolist()

    return Theirs()


def _splitter():
    from langchain_text_splitters import CharacterTextSplitter

    return CharacterTextSplitter()


def test_hypothetical_document_embedder_finds_what_ours_does(pipeline):
    chains = pytest.importorskip("langchain_classic.chains")
    from langchain_core.language_models import FakeListLLM
    from langchain_core.prompts import PromptTemplate

    document = "The burner of the curing oven is locked out."
    chain = PromptTemplate.from_template("{q}") | FakeListLLM(responses=[document] * 2)
    theirs = chains.HypotheticalDocumentEmbedder(llm_chain=chain, base_embeddings=theirs_of(HashEmbedder()))
    mine = pipeline.set("query.hyde", "always").replace(hyde=lambda question, query_class: document)
    trace = mine.ask("What does A7 mean?")
    vector = np.asarray([theirs.embed_query("What does A7 mean?")], dtype=np.float32)
    (found,) = pipeline.index.search(vector, 10, step="hyde")
    assert [hit.parent_id for hit in trace.hits["hyde"]] == [hit.parent_id for hit in found]
