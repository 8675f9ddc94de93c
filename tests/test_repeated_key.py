"""A key that a server repeats, in whatever place, is in no file afterwards: every byte of home and run is looked at."""

import base64
import json
import re
import sqlite3
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from loopback_models import Scripted, openai_server
from nbformat.v4 import new_code_cell, new_notebook
from small_dataset import write_dataset

from rag_lab.data.dataset import Dataset
from rag_lab.errors import StoreError
from rag_lab.experiment.executors.local import Job, execute
from rag_lab.experiment.run.sweep import sweep
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.shared import chat_model
from rag_lab.records import Question, Score, StageRecord, Trace
from rag_lab.runs.run_folder import read_json, write_json
from rag_lab.runs.variant_files import read_traces, write_scores, write_traces
from rag_lab.stores.engine import Server, failing

pytestmark = pytest.mark.slow

KEY = "tEaM-g4teway/k3y+0f-the-Works"
FORMS = (
    KEY,
    KEY[:16],
    base64.b64encode(KEY.encode()).decode(),
    KEY.replace("/", "%2F"),
    KEY.replace("/", "\\/"),
)


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return KEY


def contents(*folders):
    """Yield every file with its bytes; rows of SQLite and Parquet once more as text."""
    for path in (path for folder in folders for path in Path(folder).rglob("*") if path.is_file()):
        yield path, path.read_bytes().decode("utf-8", errors="replace")
        if path.suffix == ".sqlite":
            with sqlite3.connect(path) as database:
                yield path, "\n".join(database.iterdump())
        if path.suffix == ".parquet":
            yield path, pd.read_parquet(path).to_csv()


def leaks(*folders):
    return sorted({(str(path), form) for path, text in contents(*folders) for form in FORMS if form in text})


def repeating(body):
    """Repeat the key as text, in JSON, coded, cut off, in the thinking, or in an error, by what is asked."""
    asked = body["messages"][-1]["content"]
    said = f"You sent Authorization: Bearer {KEY}, which is {base64.b64encode(KEY.encode()).decode()}, or {KEY[:16]}"
    if "What does alarm A7" in asked and "Passages:" in asked:
        return Scripted(text=said, status=400)
    if "Passages:" in asked:
        return Scripted(text=json.dumps({"answer": said, "citations": [1]}), thinking=f"The key is {KEY}")
    if "statements" in str(body.get("response_format", "")) or "verdict" in asked:
        return Scripted(text=json.dumps({"statements": [said], "reason": said, "verdict": 1}), thinking=said)
    return Scripted(text=json.dumps({"class": "fuzzy", "hyde": True, "rewritten": f"{asked.splitlines()[-1]} {KEY}"}))


def was_sent(server):
    return {f"Bearer {KEY}"} == {
        value for sent in server.headers for name, value in sent.items() if name.lower() == "authorization"
    }


@pytest.mark.parametrize("written", [lambda key: key, lambda key: base64.b64encode(key.encode()).decode()])
def test_a_reply_its_thinking_and_its_error_come_without_the_key(written):
    said = f"It is {written(KEY)}."
    script = [
        Scripted(text=said, thinking=said),
        Scripted(text=said, status=400),
        Scripted(text=f"<think>{said}</think>a"),
    ]
    with openai_server(script) as server:
        model = chat_model(f"openai:m?base_url={server.url}&max_attempts=1")
        replies = [model.generate([ChatRequest((Message("user", "Why?"),), max_tokens=200)])[0] for _ in script]
        assert was_sent(server)
    assert replies[0].text == replies[0].thinking == "It is [hidden]."
    assert "It is [hidden]" in replies[1].error
    assert replies[2].thinking == "It is [hidden]."


def test_no_byte_of_home_and_run_holds_a_key_that_a_server_repeats(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAG_LAB_HOME", str(tmp_path / "home"))
    write_dataset(tmp_path)
    with openai_server(repeating) as server:
        model = f"openai:m?base_url={server.url}&max_attempts=1"
        (tmp_path / "e.yaml").write_text(
            f"name: e\nquestion: Does {KEY} leak?\ndataset: ./small\njudge: {model}\n"
            "base:\n  query: {rewrite: llm, hyde: always}\n  answer: {name: llm}\n"
            f"  models: {{generation: '{model}', understanding: '{model}', hyde: '{model}'}}\n"
            "metrics: [retrieval.ndcg@10, ragas.faithfulness]\n"
        )
        run = sweep("e.yaml", tmp_path / "run", progress=False)
        assert was_sent(server)
    traces = run.traces("baseline")
    assert any("[hidden]" in (trace.raw_text or "") for trace in traces)
    assert any("[hidden]" in record.reason for trace in traces for record in trace.stages)
    assert any("[hidden]" in trace.answer.thinking for trace in traces if trace.answer)
    with sqlite3.connect(tmp_path / "home" / "scores.sqlite") as database:
        judged = [value for (value,) in database.execute("SELECT value FROM remembered WHERE room = 'judge'")]
    assert any("[hidden]" in value for value in judged)
    assert (tmp_path / "run" / "report.html").is_file()
    assert leaks(tmp_path / "run", tmp_path / "home") == []


def test_what_a_kernel_prints_is_kept_without_the_key_and_without_control_characters(tmp_path):
    body = (
        "import os, sys\nprint('\\x1b]0;out\\x07', os.environ['OPENAI_API_KEY'])\n"
        "os.write(2, f\"\\x1b]0;native\\x07 {os.environ['OPENAI_API_KEY']}\\n\".encode())\n"
        "raise ValueError(f\"\\x1b]0;error\\x07 {os.environ['OPENAI_API_KEY']}\")\n"
    )
    book = new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        cells=[new_code_cell("A: int = 0", metadata={"tags": ["parameters"]}), new_code_cell(body)],
    )
    nbformat.write(book, tmp_path / "book.ipynb")
    (tmp_path / "out").mkdir()
    job = Job("one", tmp_path / "book.ipynb", tmp_path / "out/one.ipynb", {"A": 1}, tmp_path / "out/one.log")
    (done,) = execute([job])
    assert done.reason == r"ValueError: \x1b]0;error\x07 [hidden]"
    assert leaks(tmp_path / "out") == []
    shown = [cell["outputs"] for cell in nbformat.read(job.output, 4).cells if cell.get("outputs")]
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "".join(strings(shown)))
    assert r"\x1b]0;out\x07 [hidden]" in "".join(strings(shown))
    assert r"\x1b]0;native\x07 [hidden]" in job.log.read_text()


def strings(value):
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(inner)


def test_the_net_below_every_file_catches_what_came_another_way(tmp_path):
    trace = Trace(Question("q1", f"Is {KEY} right? \x1b"), stages=(StageRecord("generate", "failed", f"no {KEY}"),))
    write_traces(tmp_path / "traces.jsonl", [trace])
    write_scores(tmp_path / "scores.parquet", {"a": [Score("q1", "m", None, "failed", f"no {KEY}")]})
    write_json(tmp_path / "record.json", {"reason": [KEY, {KEY: 1.5}], "name": "Maß \x9b"})
    Memory(tmp_path / "stages.sqlite").store("room", {"k": json.dumps({"text": f"a {KEY}", "n": 0.5})})
    assert leaks(tmp_path) == []
    assert read_traces(tmp_path / "traces.jsonl")[0].question.text == "Is [hidden] right? \x1b"
    assert read_json(tmp_path / "record.json") == {"reason": ["[hidden]", {"[hidden]": 1.5}], "name": "Maß \x9b"}
    assert json.loads(Memory(tmp_path / "stages.sqlite").recall(["k"])["k"]) == {"text": "a [hidden]", "n": 0.5}


def test_a_store_that_repeats_its_key_is_told_without_it(monkeypatch):
    monkeypatch.setenv("QDRANT_API_KEY", "qdrant-key-4711")
    with (
        pytest.raises(StoreError, match=r"'\[hidden\]' is wrong") as failed,
        failing(Server("http://127.0.0.1:1", "c")),
    ):
        raise ConnectionError("the api-key 'qdrant-key-4711' is wrong")
    assert "4711" not in str(failed.value)


def test_a_dataset_is_data_and_stays_as_it_is(tmp_path):
    path = write_dataset(tmp_path, extra_questions=[{"id": "k", "question": f"Is {KEY} ours?", "answers": ["yes"]}])
    assert any(KEY in question.text for question in Dataset.load(str(path)).questions)
