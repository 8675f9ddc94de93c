"""Every experiment that is shipped runs, with the packaged models and over few documents.

Its remote models answer on loopback, as does its judge.
"""

import json
import re

import pytest
import yaml
from doubles import good_reply
from loopback_chat import loopback_chat
from small_dataset import write_dataset
from small_plans import run_jobs_here
from tiny_models import write_tiny_bert

from rag_lab.experiment.config import checkout_file
from rag_lab.experiment.run.sweep import sweep
from rag_lab.models.protocols import ChatRequest, Message

pytestmark = pytest.mark.slow

LIMITS = {"questions": 2, "answers": 1}
NEEDS_MORE = ("race",)  # rounds of ten questions at least, see run/choosing/test_run_race.py
FILES = sorted(checkout_file("experiments/presets").parent.glob("*.yaml"))
EXPERIMENTS = [path for path in FILES if path.stem not in NEEDS_MORE]
HUB_CROSS_ENCODER = "sentence_transformers:BAAI/bge-reranker-v2-m3"
_REMOTE = re.compile(r"\b(?:gemini|openai|ollama|unsloth):[^\s,\]\"']+")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """One for all of them: weights are converted once; a tiny cross-encoder lies there, too."""
    folder = tmp_path_factory.mktemp("shared_home")
    write_tiny_bert(folder / "tiny-bert", ["press", "oven", "valve", "fish"], num_labels=1)
    return folder


def judged(body):
    """Answer a prompt of RAGAs' by the schema that it holds the reply to; any other as an assistant does."""
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    messages = tuple(Message(one["role"], one["content"]) for one in body["messages"])
    if schema.keys() and not schema.get("properties", {}).keys() & {"answer", "class", "rewritten"}:
        return good_reply(ChatRequest(messages, json_schema=schema, seed=body.get("seed", 0)))
    return None


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_it_runs(path, home, tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_LAB_HOME", str(home))
    with loopback_chat() as chat:
        plain = chat.reply
        chat.reply = lambda body: judged(body) or plain(body)
        text = _REMOTE.sub(lambda found: chat.spec(found[0].replace(":", "-")), path.read_text(encoding="utf-8"))
        text = text.replace(HUB_CROSS_ENCODER, f"sentence_transformers:{home / 'tiny-bert'}")
        given = yaml.safe_load(text) | {"dataset": str(write_dataset(tmp_path)), "limits": LIMITS}
        run_jobs_here(monkeypatch)
        run = sweep(given, tmp_path / "run", progress=False)
    counts = json.loads((run.path / "manifest.json").read_text())["counts"]
    assert (run.path / "report.html").is_file()
    assert counts["scored"] and not counts["failed"]
    assert set(run.scores()["metric"]) >= set(given["metrics"])
