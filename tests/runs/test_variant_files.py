"""traces.jsonl, scores.parquet and live.json: what is read is what was written, also by an earlier version."""

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from doubles import hits
from pydantic import TypeAdapter

from rag_lab._kit.machine import Process
from rag_lab.errors import DamagedFile
from rag_lab.records import Evidence, Passage, Question, Score, StageRecord, Trace
from rag_lab.runs.run_folder import write_json
from rag_lab.runs.variant_files import (
    COLUMNS,
    LIVE_FILE,
    LiveEnd,
    LiveSweep,
    LiveVariant,
    read_live,
    read_scores,
    read_traces,
    to_frame,
    write_scores,
    write_traces,
)

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


def in_full(trace):
    """Return a trace as JSON in which texts stand as often as they are needed."""
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


@pytest.mark.parametrize("line", ["", "5", "[]", '"hits"', '["hits"]', "{}", '{"hits": 1}', "{", *UNKNOWN])
def test_a_line_that_is_no_trace_is_named(path, line):
    write_traces(path, [Trace(Question("q", "?"))])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(DamagedFile, match=r"line 2 is no trace"):
        read_traces(path)


SCORES = [
    Score("q1", "retrieval.ndcg@10", 0.5),
    Score("q2", "ragas.faithfulness", None, "failed", "no JSON", repeat=1, judge="j", seconds=2.5, calls=3),
]


def test_the_file_has_the_contract_s_columns_and_nulls(tmp_path):
    path = tmp_path / "scores.parquet"
    write_scores(path, {"baseline": SCORES, "no_hyde": SCORES[:1]})
    table = pq.read_table(path)
    names = "variant_id question_id metric repeat value status reason judge seconds calls truncated_tokens"
    assert table.column_names == names.split()
    assert table["value"].to_pylist() == [0.5, None, 0.5]
    assert table["variant_id"].to_pylist() == ["baseline", "baseline", "no_hyde"]
    assert list(tmp_path.iterdir()) == [path]


def test_reading_gives_back_what_was_written(tmp_path):
    write_scores(tmp_path / "s.parquet", {"v": SCORES})
    frame = read_scores(tmp_path / "s.parquet")
    assert frame.equals(to_frame({"v": SCORES}))
    assert frame.iloc[1].drop("value").to_dict() == {
        **{"variant_id": "v", "question_id": "q2", "metric": "ragas.faithfulness", "repeat": 1, "status": "failed"},
        **{"reason": "no JSON", "judge": "j", "seconds": 2.5, "calls": 3, "truncated_tokens": 0},
    }


def test_no_scores_keep_their_types(tmp_path):
    write_scores(tmp_path / "s.parquet", {})
    assert read_scores(tmp_path / "s.parquet").dtypes.astype(str).to_dict() == COLUMNS


def test_what_is_written_is_read_until_it_is_removed(tmp_path):
    live = LiveVariant("generate", 2.0, 3, 8, 1, 40, 2, 1, 0, "generate: it broke")
    write_json(tmp_path / LIVE_FILE, live)
    assert read_live(tmp_path, LiveVariant) == live
    sweep = LiveSweep(Process.of(), 1.0, 2.0, 2, "variants", {"a": 1.5}, {"b": LiveEnd("failed", "It broke.", 3.0)})
    write_json(tmp_path / LIVE_FILE, sweep)
    assert read_live(tmp_path, LiveSweep) == sweep
    assert read_live(tmp_path, LiveSweep).process.runs()
    (tmp_path / LIVE_FILE).unlink()
    assert read_live(tmp_path, LiveSweep) is None


def test_no_secret_and_no_control_character_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "k3y-of-nobody-else")
    write_json(tmp_path / LIVE_FILE, LiveVariant("generate", 2.0, reason="\x1b[2J k3y-of-nobody-else"))
    text = (tmp_path / LIVE_FILE).read_text()
    assert "\x1b" not in text and "k3y-of" not in text
    assert json.loads(text)["reason"] == "\x1b[2J [hidden]"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"stage": 3}'])
def test_what_cannot_be_read_is_nothing(tmp_path, text):
    (tmp_path / LIVE_FILE).write_text(text)
    assert read_live(tmp_path, LiveVariant) is None
    assert read_live(tmp_path, LiveSweep) is None
