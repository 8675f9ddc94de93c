"""Logs of several processes in one file, and spans: what is recorded, what is hidden, what a process inherits."""

import json
import logging
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from small_dataset import write_dataset
from tiny_models import write_tiny_gguf

from rag_lab._kit import observability
from rag_lab._kit.observability import FILE_VARIABLE, LEVEL_VARIABLE, begin_inherited_logs, begin_logs, working
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.memory.results import Memory
from rag_lab.models import shared
from rag_lab.models.remembered_vectors import RememberedEmbedder, RememberedScorer
from rag_lab.models.remote.retries import in_parallel
from rag_lab.pipeline import Pipeline
from rag_lab.records import Answer, Question, Trace

LOGGER = logging.getLogger("rag_lab.some.module")
CHILD = """
import logging
from rag_lab._kit.observability import begin_inherited_logs
from rag_lab._kit.observability import working
begin_inherited_logs()
with working(variant="child"):
    for n in range(200):
        logging.getLogger("rag_lab.child").info("%d %s", n, "x" * 500)
"""


@pytest.fixture(autouse=True)
def _as_before(monkeypatch):
    for name in (FILE_VARIABLE, LEVEL_VARIABLE):
        monkeypatch.setenv(name, "")  # so that it is put back afterwards, whatever sets it
    root, ours = logging.getLogger(), logging.getLogger("rag_lab")
    before = list(root.handlers), root.level, ours.level
    yield
    for handler in [one for one in root.handlers if one not in before[0]]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(before[1])
    ours.setLevel(before[2])


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_says_what_is_worked_at(tmp_path):
    begin_logs(None, tmp_path / "a" / "log.jsonl")
    with working(variant="v1", stage="generate"), working(questions=["q1"]):
        LOGGER.info("it is %s", "late")
    with working(questions=["q1", "q2"]):
        LOGGER.warning("two")
    LOGGER.debug("nobody asked")
    logging.getLogger("a_library").info("chatter")
    first, second = lines(tmp_path / "a" / "log.jsonl")
    assert first.pop("time").endswith("+00:00")
    assert first == {
        "level": "info", "logger": "rag_lab.some.module", "message": "it is late", "process": os.getpid(),
        "variant": "v1", "stage": "generate", "question": "q1",
    }  # fmt: skip
    assert (second["question"], second["level"]) == (["q1", "q2"], "warning")
    assert "variant" not in second


def test_secrets_and_control_characters_do_not_come_in(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "a-key-of-nobody")
    begin_logs("info", tmp_path / "log.jsonl")
    try:
        raise ValueError("a-key-of-nobody \x1b[2J")
    except ValueError:
        LOGGER.exception("sent a-key-of-nobody\n\u202eand Bearer abcdefgh12345678zz")
    text = (tmp_path / "log.jsonl").read_text()
    assert text.count("\n") == 1
    assert not any(bad in text for bad in ("a-key-of", "abcdefgh12345678zz", "\x1b", "\u202e"))
    assert "ValueError" in lines(tmp_path / "log.jsonl")[0]["exception"]


def test_processes_that_inherit_the_file_write_whole_lines_into_it(tmp_path):
    path = tmp_path / "log.jsonl"
    begin_logs("info", path)
    children = [subprocess.Popen([sys.executable, "-c", CHILD]) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    found = lines(path)
    assert len(found) == 400 and {line["variant"] for line in found} == {"child"}
    assert len({line["process"] for line in found}) == 2


def test_threads_that_ask_for_a_stage_know_its_question(tmp_path):
    begin_logs("info", tmp_path / "log.jsonl")
    with working(stage="generate", questions=["q7"]):
        in_parallel(lambda n: LOGGER.info("%d", n), [1, 2, 3], 3)
    assert {(line["stage"], line["question"]) for line in lines(tmp_path / "log.jsonl")} == {("generate", "q7")}


def test_without_a_file_the_level_is_that_of_the_terminal(tmp_path, capsys):
    begin_logs("info", None)
    LOGGER.info("hello")
    assert capsys.readouterr().err == "INFO rag_lab.some.module: hello\n"


def test_with_a_file_the_terminal_shows_warnings_as_before_and_each_once(tmp_path, capsys):
    begin_logs(None, tmp_path / "log.jsonl")
    begin_inherited_logs()
    LOGGER.info("quiet")
    LOGGER.warning("loud")
    assert capsys.readouterr().err == "loud\n"
    assert len(lines(tmp_path / "log.jsonl")) == 2


def test_what_cannot_be_is_one_sentence(tmp_path):
    with pytest.raises(ConfigError, match="no log level 'loud'; give one of debug, info, warning, error"):
        begin_logs("loud", None)
    os.environ[LEVEL_VARIABLE] = ""
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="Cannot log to .*; give another file with --log-file"):
        begin_logs(None, tmp_path / "file" / "log.jsonl")


TRACED_CHILD = """
from rag_lab import traced
@traced("mine")
def double(n): return 2 * n
print(double(4))
"""


@pytest.fixture
def spans(monkeypatch):
    monkeypatch.setenv(observability.SWITCH, "1")
    collector, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(collector))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    observability._tracer.cache_clear()
    yield collector.get_finished_spans
    observability._tracer.cache_clear()


def test_a_function_of_ones_own_is_a_span_below_the_stage_that_calls_it(spans, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "a-key-of-nobody")

    @observability.traced
    def mine(n):
        return 2 * n

    with working(variant="v", questions=["q1"]), observability.span("stage search") as said:
        said.set(gen_ai__request__model="m?key=a-key-of-nobody", rag_lab__cost_usd=0.5, nothing=None)
        said.set_text("gen_ai.prompt", "private")
        assert mine(2) == 4
    inner, outer = spans()
    assert inner.name.endswith("mine") and inner.parent.span_id == outer.context.span_id
    assert dict(outer.attributes) == {
        "rag_lab.variant": "v", "rag_lab.questions": ("q1",), "gen_ai.request.model": "m?key=[hidden]",
        "rag_lab.cost_usd": 0.5,
    }  # fmt: skip


def test_texts_are_kept_where_asked_for_and_without_secrets(spans, monkeypatch):
    monkeypatch.setenv(observability.TEXTS, "1")
    monkeypatch.setenv("MY_API_KEY", "a-key-of-nobody")
    with observability.span("chat m") as said:
        said.set_text("gen_ai.prompt", "why a-key-of-nobody?")
    assert spans()[0].attributes["gen_ai.prompt"] == "why [hidden]?"


def test_a_process_continues_the_trace_that_it_inherits(spans, monkeypatch):
    with observability.span("sweep"):
        parent = observability.trace_environment()[observability.PARENT]
    monkeypatch.setenv(observability.PARENT, parent)
    with observability.span("stage"):
        pass
    sweep, stage = spans()
    assert stage.context.trace_id == sweep.context.trace_id and stage.parent.span_id == sweep.context.span_id


class Model:
    def identity(self):
        return {"name": "double"}

    most_tokens = 8

    def text_tokens(self, texts, kind):
        return [3 for _ in texts]

    def pair_tokens(self, pairs):
        return [5 for _ in pairs]

    def embed_documents(self, texts):
        return np.ones((len(texts), 1), np.float32)

    def score(self, pairs):
        return [1.0 for _ in pairs]


def test_what_is_embedded_and_scored_is_a_span_with_its_tokens_and_what_is_remembered_is_none(
    spans, tmp_path, monkeypatch
):
    model = Model()
    monkeypatch.setattr(shared, "_NAMED", {("embedder", "mine:double", ""): model})
    for _ in range(2):
        RememberedEmbedder(model, tmp_path / "vectors.sqlite").embed_documents(["a", "b", "a"])
        RememberedScorer(model, Memory(tmp_path / "scores.sqlite")).score([("q", "a"), ("q", "b")])
    embedded, scored = spans()
    assert (embedded.name, dict(embedded.attributes)) == (
        "embed document",
        {
            "gen_ai.operation.name": "embeddings",
            "gen_ai.request.model": "mine:double",
            "gen_ai.usage.input_tokens": 6,
            "rag_lab.texts": 2,
        },
    )
    assert (scored.name, dict(scored.attributes)) == (
        "score pairs",
        {"gen_ai.request.model": "mine:double", "gen_ai.usage.input_tokens": 10, "rag_lab.pairs": 2},
    )


def test_each_metric_is_a_span_and_a_costly_one_says_how_many_scores_were_remembered(spans, tmp_path):
    traces = [Trace(Question("q1", "why", ("so",)), answer=Answer("so"))]
    for _ in range(2):
        evaluate(traces, ["ragas.rouge_score", "retrieval.ndcg@10"], memory=tmp_path / "scores.sqlite")
    assert [(one.name, one.attributes.get("rag_lab.remembered")) for one in spans()] == [
        ("metric ragas.rouge_score", 0),
        ("metric retrieval.ndcg@10", None),
        ("metric ragas.rouge_score", 1),
        ("metric retrieval.ndcg@10", None),
    ]


def test_a_question_that_is_asked_alone_is_a_span_above_its_searches_and_calls(spans, tmp_path, monkeypatch):
    monkeypatch.delenv("RAG_LAB_LEDGER", raising=False)
    model = f"llamacpp:{write_tiny_gguf(tmp_path / 'tiny.gguf')}?context=512"
    config = PipelineConfig(retrieval={"mode": "bm25"}, models={"generation": model}, answer={"name": "llm"})
    Pipeline(write_dataset(tmp_path), config, home=tmp_path / "home").ask("What does alarm A7 mean?")
    found = {one.name: one for one in spans()}
    assert found["ask"].parent is None
    assert {f"chat {model}", "search bm25", "stage generate"} <= set(found)
    assert {one.context.trace_id for one in found.values()} == {found["ask"].context.trace_id}
    said = found[f"chat {model}"].attributes
    assert (said["gen_ai.request.model"], said["gen_ai.provider.name"]) == (model, "llamacpp")
    assert said["gen_ai.usage.input_tokens"] > 0


def test_switched_off_nothing_is_imported_or_said(monkeypatch):
    monkeypatch.delenv(observability.SWITCH, raising=False)
    with observability.span("a") as said:
        said.set(b=1)
    assert observability.trace_environment() == {}
    code = f"{TRACED_CHILD}\nimport sys; print('opentelemetry' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["8", "False"]


def test_a_server_receives_what_a_process_did():
    received = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, ExportTraceServiceRequest.FromString(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{server.server_port}"}
        subprocess.run([sys.executable, "-c", TRACED_CHILD], env=environment, check=True, capture_output=True)
        server.shutdown()
    ((path, found),) = received
    (resource,) = found.resource_spans
    assert path == "/v1/traces"
    assert [span.name for scope in resource.scope_spans for span in scope.spans] == ["mine"]
