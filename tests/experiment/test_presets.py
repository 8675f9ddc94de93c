"""Every preset answers questions: the real pipeline over real files, with models that follow a script."""

import json
from dataclasses import replace

import pytest
from small_dataset import write_dataset

from rag_lab.config import PipelineConfig
from rag_lab.corpus.corpus_index import open_index
from rag_lab.data.dataset import Dataset
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.experiment.config import checkout_file
from rag_lab.memory.results import Memory
from rag_lab.pipeline import Pipeline
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
