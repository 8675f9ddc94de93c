"""`base_url` of a data set: where people open what an answer cites."""

import pytest

from rag_lab.cli.ask import answer_text
from rag_lab.config import PipelineConfig
from rag_lab.data.dataset import Dataset
from rag_lab.errors import DatasetError
from rag_lab.pipeline import Pipeline
from rag_lab.runs.variant_files import read_traces, write_traces
from rag_lab.testing import HashEmbedder

OFF = {"query.rewrite": "none", "query.hyde": "none", "retrieval.mode": "bm25", "answer.name": "extract"}


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "plant"
    (made / "corpus/press 5").mkdir(parents=True)
    (made / "corpus/press 5/flange & bolt.txt").write_text("The flange of the press needs 85 newton metres.")
    (made / "dataset.yaml").write_text("name: plant\nbase_url: https://wiki.example/docs/\n")
    return made


def test_passages_and_citations_have_an_address_wherever_they_are_shown(folder, tmp_path):
    config = PipelineConfig().override(OFF)
    pipeline = Pipeline(folder, config, home=tmp_path / "home", progress=False).replace(embedding_model=HashEmbedder())
    trace = pipeline.ask("What does the flange of the press need?")
    address = "https://wiki.example/docs/press%205/flange%20%26%20bolt.txt"
    assert {one.url for one in (*trace.passages, *trace.answer.citations)} == {address}
    assert f"<{address}>" in answer_text(trace)
    assert f'<a href="{address}"' in trace._repr_html_() and address in repr(trace)
    write_traces(tmp_path / "traces.jsonl", [trace])
    assert read_traces(tmp_path / "traces.jsonl")[0].passages == trace.passages


@pytest.mark.parametrize("url", ["javascript:alert(1)", "wiki/docs", "https://a b"])
def test_another_address_is_refused(folder, url):
    (folder / "dataset.yaml").write_text(f"name: plant\nbase_url: {url!r}\n")
    with pytest.raises(DatasetError, match="base_url"):
        Dataset.load(folder, labelled=False)


def test_a_corpus_that_is_searched_too_has_an_address_of_its_own_or_none(folder, tmp_path):
    for name, base_url in (("handbook", "base_url: http://books.example"), ("attic", "")):
        (tmp_path / name / "corpus").mkdir(parents=True)
        (tmp_path / name / "corpus/flange.txt").write_text(f"The flange of the {name}.")
        (tmp_path / name / "dataset.yaml").write_text(f"name: {name}\n{base_url}\n")
    also = [str(tmp_path / name) for name in ("handbook", "attic")]
    config = PipelineConfig().override({**OFF, "retrieval.also": also})
    pipeline = Pipeline(folder, config, home=tmp_path / "home", progress=False).replace(embedding_model=HashEmbedder())
    found = {one.source: one.url for one in pipeline.ask("What does the flange of the press need?").passages}
    assert found["handbook/flange.txt"] == "http://books.example/flange.txt" and found["attic/flange.txt"] == ""
    assert found["press 5/flange & bolt.txt"].startswith("https://wiki.example/docs/press%205/")
