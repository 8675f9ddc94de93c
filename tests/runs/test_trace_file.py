"""traces.jsonl: what is read is what was written, also by an earlier version."""

import json

import pytest
from doubles import hits

from rag_lab.errors import DamagedFile
from rag_lab.records import Question, Trace
from rag_lab.runs.trace_file import read_traces, write_traces


@pytest.fixture
def path(tmp_path):
    return tmp_path / "traces.jsonl"


def test_the_hits_of_searches_of_any_name_are_read_as_written(path):
    trace = Trace(Question("q", "?"), hits={"dense": tuple(hits("oven#p1")), "my search": ()})
    write_traces(path, [trace])
    assert read_traces(path) == [trace]


def test_traces_in_which_each_search_had_a_field_are_read(path):
    found = tuple(hits("oven#p1", "press#p1"))
    write_traces(path, [Trace(Question("q", "?"), hits={"dense": found}, base_hits=found)])
    data = json.loads(path.read_text())
    by_search = data.pop("hits")
    fields = {"dense_hits": by_search["dense"], "bm25_hits": [], "tfidf_hits": [], "hyde_hits": by_search["dense"][:1]}
    path.write_text(json.dumps(data | fields) + "\n")
    (trace,) = read_traces(path)
    assert trace.hits == {"dense": found, "bm25": (), "tfidf": (), "hyde": found[:1]} and trace.base_hits == found


@pytest.mark.parametrize("line", ["", "5", "[]", '"dense_hits"', '["dense_hits"]', "{}", '{"hits": 1}', "{"])
def test_a_line_that_is_no_trace_is_named(path, line):
    write_traces(path, [Trace(Question("q", "?"))])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(DamagedFile, match=r"line 2 is no trace"):
        read_traces(path)
