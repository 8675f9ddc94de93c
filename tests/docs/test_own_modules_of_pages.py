"""The modules of one's own in docs/measuring.md, retrieval.md and sweeps.md run as they stand."""

import re
from pathlib import Path

import pytest
import yaml
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

import rag_lab as rl
from rag_lab._kit.registry import modules_from
from rag_lab.experiment import plan
from rag_lab.testing.doubles import sample_trace

DOCS = Path(__file__).parents[2] / "docs"
DOCUMENTS = [Document("The guides take grease NLGI 2."), Document("The oven cures at 180 degrees.")]
ALONE = {"query.rewrite": "none", "query.hyde": "none", "answer.name": "none"}


def block(page, language, holds):
    found = re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(encoding="utf-8"), re.M | re.S)
    (text,) = [text for text in found if holds in text]
    return text


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    with modules_from(tmp_path):
        yield tmp_path


def test_the_metrics_of_the_page_on_measuring(folder):
    (folder / "mine.py").write_text(block("measuring.md", "python", "class Spread"), encoding="utf-8")
    experiment = folder / "spread.yaml"
    experiment.write_text(block("measuring.md", "yaml", "mine:Spread"), encoding="utf-8")
    made = plan.plan(experiment)
    trace = sample_trace()
    first, second = rl.evaluate([trace], made.experiment.metrics[1:])
    sources = [hit.source for hit in trace.ranked]
    assert (first.metric, first.value) == ("files", len(set(sources)))
    assert (second.metric, second.value) == ("Spread?first=3", len(set(sources[:3])))
    assert second.reason == ", ".join(sorted(set(sources[:3])))


def test_the_search_fusion_and_selection_of_the_page_on_retrieval(folder):
    (folder / "found.py").write_text(block("retrieval.md", "python", "class SharedWords"), encoding="utf-8")
    config = yaml.safe_load(block("retrieval.md", "yaml", "found:SharedWords"))
    keys = {f"{section}.{key}": value for section, values in config.items() for key, value in values.items()}
    trace = rl.Pipeline(DOCUMENTS).set(ALONE | keys).ask("Which grease do the guides take?")
    assert trace.failure is None
    assert set(trace.hits) == {"bm25", "found:SharedWords"}
    assert "own_fusion" in trace.ranked[0].scores
    assert trace.ranked[0].source == "document 1"


def test_the_retrievers_of_the_page_on_retrieval():
    store = InMemoryVectorStore.from_documents(DOCUMENTS, DeterministicFakeEmbedding(size=8))
    code = block("retrieval.md", "python", "as_retriever").rstrip()
    names = {"documents": DOCUMENTS, "store": store}
    head, _, last = code.rpartition("\n")
    exec(head, names)  # our own page
    found = eval(last, names)
    assert {document.page_content for document in found} == {document.page_content for document in DOCUMENTS}
    assert {"chunk_id", "score", "trace"} <= set(found[0].metadata)


@pytest.mark.slow
def test_the_comparison_and_the_sweep_of_the_page_on_sweeps(monkeypatch):
    planned = []
    monkeypatch.setattr(rl, "sweep", lambda experiment: planned.append(plan.plan(experiment)), raising=False)
    names = {}
    exec(block("sweeps.md", "python", "rl.compare"), names)  # our own page
    assert names["found"].run.path.parent.name == "compared"
    assert [variant.changes for variant in planned[0].variants] == [{}, {"retrieval.mode": "tfidf"}]


@pytest.mark.slow
def test_the_five_concepts_of_their_page():
    names = {}
    exec(block("concepts.md", "python", "rl.compare"), names)  # our own page
    assert set(names["run"].summary["metric"]) == {"retrieval.ndcg@10", "files"}
