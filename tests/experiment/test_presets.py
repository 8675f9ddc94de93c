"""Every preset answers questions with models that follow a script; every experiment that is shipped runs."""

import json
import re
from dataclasses import replace

import pytest
import yaml
from doubles import good_reply
from loopback_chat import loopback_chat
from small_dataset import write_dataset
from small_plans import run_jobs_here
from tiny_models import write_tiny_bert

from rag_lab.comparison.tables.costs import IndexPrice
from rag_lab.config import PipelineConfig
from rag_lab.corpus.corpus_index import open_index
from rag_lab.data.dataset import Dataset
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.experiment.config import checkout_file
from rag_lab.experiment.run.sweep import sweep
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.pipeline import Pipeline
from rag_lab.report.compare_text import compare_text
from rag_lab.testing import HashEmbedder, ScriptedChat

pytestmark = pytest.mark.slow

PRESETS = sorted(checkout_file("experiments/presets").glob("*.yaml"))


def reply(request):
    """Answer anything that is asked; a rewrite is the question itself."""
    asked = request.messages[-1].content.rpartition("Question: ")[2]
    return json.dumps({"class": "fuzzy", "rewritten": asked, "hyde": True, "answer": "Yes.", "citations": [1]})


@pytest.fixture
def run(monkeypatch, tmp_path):
    chat = ScriptedChat(reply, context_tokens=10**6)
    monkeypatch.setattr("rag_lab.models.shared.chat_model", lambda spec, purpose="": chat)

    def run(config, questions=None):
        dataset = Dataset.load(write_dataset(tmp_path))
        home = tmp_path / "home"
        index = open_index(dataset.corpus_dir, config.corpus, HashEmbedder(), home=home, store=config.store)
        pipeline = Pipeline.on(index, HashEmbedder(), config, Memory(home / "stages.sqlite"))
        return pipeline.run(questions or dataset.questions)

    return run


@pytest.mark.parametrize("path", PRESETS, ids=[path.stem for path in PRESETS])
def test_it_finds_and_answers(run, path):
    changes = {"retrieval.min_score": None, "rerank.name": "none"}  # hashed words are far apart; no weights are loaded
    config = PipelineConfig.load(path).override(changes)
    traces = run(config)
    assert [trace.failure for trace in traces] == [None] * 4
    assert [trace.ranked[0].source for trace in traces[:3]] == ["press.md", "oven.txt", "canteen.txt"]
    replied = [trace.answer.text if trace.answer else None for trace in traces]
    assert replied[:3] == ["Yes."] * 3 if config.answer.name == "llm" else all(replied[:3])


def test_what_was_run_can_be_evaluated_as_it_is(run):
    """Nobody has to locate the evidence first: a forgotten step would take these values, or make them others."""
    config = PipelineConfig().override({"query.rewrite": "none", "query.hyde": "none", "rerank.final_k": 1})
    traces = run(config)
    assert all(evidence.context and evidence.start is not None for t in traces for evidence in t.question.evidence)
    metrics = ["retrieval.mrr@10", "ragas.non_llm_context_recall"]
    statuses = {name: [s.status for s in evaluate(traces, [name])] for name in metrics}
    assert statuses == dict.fromkeys(metrics, ["scored"] * 3 + ["not_applicable"])  # q4 has no evidence


@pytest.mark.parametrize("path", PRESETS, ids=[path.stem for path in PRESETS])
def test_it_begins_by_saying_what_it_is(path):
    first = path.read_text().splitlines()[0]
    assert first.startswith("# ")


def test_where_a_threshold_leaves_nothing_retrieval_scores_zero_and_the_reader_does_without(run, tmp_path):
    config = PipelineConfig.load(checkout_file("experiments/presets/homer.yaml"))
    (asked,) = [q for q in Dataset.load(write_dataset(tmp_path)).questions if q.question_id == "q1"]
    asked = replace(asked, text="Zebra quagga xylophone?")
    (trace,) = run(config, [asked])
    assert (trace.failure, trace.candidates, trace.passages) == (None, (), ())
    assert "nothing was found" in [record.reason for record in trace.stages]
    (score,) = evaluate([trace], ["retrieval.ndcg@10"])
    assert (score.status, score.value) == ("scored", 0.0)


LIMITS = {"questions": 2, "answers": 1}
NEEDS_MORE = ("race",)  # rounds of ten questions at least, see run/choosing/test_run_race.py
FILES = sorted(checkout_file("experiments/presets").parent.glob("*.yaml"))
EXPERIMENTS = [path for path in FILES if path.stem not in NEEDS_MORE]
CONVERTED = ("q3_k", "q2_k", "q4_0")  # weights that take half a minute each to make; see models/local/test_gguf.py
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


def write_texts(folder, n):
    folder.mkdir()
    for number in range(n):
        (folder / f"{number}.txt").write_text(f"Tide table {number}: high water at the pier at {number} o'clock.")
    return folder


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_it_runs(path, home, tmp_path, monkeypatch):
    monkeypatch.setenv("RAG_LAB_HOME", str(home))
    with loopback_chat() as chat:
        plain = chat.reply
        chat.reply = lambda body: judged(body) or plain(body)
        text = _REMOTE.sub(lambda found: chat.spec(found[0].replace(":", "-")), path.read_text(encoding="utf-8"))
        text = text.replace(HUB_CROSS_ENCODER, f"sentence_transformers:{home / 'tiny-bert'}")
        given = yaml.safe_load(text) | {"dataset": str(write_dataset(tmp_path)), "limits": LIMITS}
        if path.stem == "quantization":
            given["variants"] = {one: keys for one, keys in given["variants"].items() if one not in CONVERTED}
        if path.stem == "corpus_growth":
            others = write_texts(tmp_path / "others", 5)
            given["base"]["corpus"]["distractors_from"] = str(others)
            given["factors"]["corpus.distractors"] = [0, 2, 5]
        if "corpus.folder" in given.get("factors", {}):
            later = write_dataset(tmp_path, "later")
            (later / "corpus/oven.txt").write_text("The curing oven runs at 190 degrees. Alarm A7 means that it rains.")
            given["factors"]["corpus.folder"] = [given["dataset"], str(later)]
        run_jobs_here(monkeypatch)
        run = sweep(given, tmp_path / "run", progress=False)
    counts = json.loads((run.path / "manifest.json").read_text())["counts"]
    assert (run.path / "report.html").is_file()
    assert counts["scored"] and not counts["failed"]
    assert set(run.scores()["metric"]) >= set(given["metrics"])
    if path.stem == "freshness":
        assert "oven.txt" in compare_text(run.path, only=["answers"])
    if path.stem == "indexing":
        price = run.recorded("mode-late", "index", IndexPrice, "its index")
        assert price.chunks and price.seconds and price.bytes
