"""traces.jsonl: what is read is what was written, also by an earlier version."""

import json
from dataclasses import replace

import pytest
from doubles import hits
from pydantic import TypeAdapter

from rag_lab.errors import DamagedFile
from rag_lab.records import Evidence, Passage, Question, StageRecord, Trace
from rag_lab.runs.variant_files import read_traces, write_traces

LONG = "The oven holds 0 bar until its valve is set. " * 5
ASKED = '"question": {"question_id": "q", "text": "?"}'
UNKNOWN = (  # what stands for something that the file does not have
    f'{{{ASKED}, "passages": [{{"text": {{"text": 7}}}}]}}',
    f'{{{ASKED}, "found": [], "hits": {{}}, "ranked": [[0, 1.0]]}}',
    f'{{{ASKED}, "found": [], "hits": {{}}, "ranked": {{"first": 1, "of": "hits.none"}}}}',
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "traces.jsonl"


def test_the_hits_of_searches_of_any_name_are_read_as_written(path):
    trace = Trace(Question("q", "?"), hits={"dense": tuple(hits("oven#p1")), "my search": ()})
    write_traces(path, [trace])
    assert read_traces(path) == [trace]


def test_traces_in_which_each_search_had_a_field_are_read(path):
    found = tuple(hits("oven#p1", "press#p1"))
    data = in_full(Trace(Question("q", "?"), base_hits=found))
    del data["hits"]
    written = data["base_hits"]
    fields = {"dense_hits": written, "bm25_hits": [], "tfidf_hits": [], "hyde_hits": written[:1]}
    path.write_text(json.dumps(data | fields) + "\n")
    (trace,) = read_traces(path)
    assert trace.hits == {"dense": found, "bm25": (), "tfidf": (), "hyde": found[:1]} and trace.base_hits == found


def in_full(trace):
    """Return a trace as JSON, as lines were written before nothing stood in them twice."""
    return TypeAdapter(Trace).dump_python(trace, mode="json", exclude={"texts"})


def long_trace(name):
    """Return a trace as an answered question has it: a passage that is evidence, context and part of the prompt."""
    found = tuple(hits("oven#p1", "press#p1"))
    fused = tuple(replace(hit, score=1 / rank, scores={**hit.scores, "rrf": 1.0}) for rank, hit in enumerate(found, 1))
    evidence = Evidence("oven", 1, "0 bar", 3, 8, LONG)
    passage = Passage(1, "oven#p1", "oven", 1, 0, len(LONG), LONG)
    return Trace(
        Question(name, "?", evidence=(evidence,)),
        hits={"bm25": found, "dense": ()},
        base_hits=found[:1],
        candidates=fused,
        ranked=fused[::-1],
        passages=(passage, replace(passage, number=2, text="short", parent_text=LONG)),
        prompt=f"Read: [1] {LONG} [2] short.",
        stages=(StageRecord("retrieve", seconds=0.5), StageRecord("rerank", "fallback", "no model", curable=True)),
    )


def test_a_passage_stands_once_in_a_file_and_a_hit_once_in_a_line(path):
    traces = [long_trace("q1"), long_trace("q2")]
    write_traces(path, traces)
    first, second = path.read_text().splitlines()
    assert read_traces(path) == traces
    assert first.count(LONG) == 1 and LONG not in second
    assert second.count('"oven#p1/0"') == 2  # in its two scores: as found, and as fused
    assert json.loads(second)["base_hits"] == {"first": 1, "of": "hits.bm25"}


def test_traces_that_were_written_in_full_are_read(path):
    traces = [long_trace("q1"), long_trace("q2")]
    path.write_text("".join(f"{json.dumps(in_full(trace))}\n" for trace in traces))
    assert read_traces(path) == traces


@pytest.mark.parametrize("line", ["", "5", "[]", '"dense_hits"', '["dense_hits"]', "{}", '{"hits": 1}', "{", *UNKNOWN])
def test_a_line_that_is_no_trace_is_named(path, line):
    write_traces(path, [Trace(Question("q", "?"))])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(DamagedFile, match=r"line 2 is no trace"):
        read_traces(path)
