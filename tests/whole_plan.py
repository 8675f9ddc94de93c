"""A plan on the small dataset whose models are doubles, and its run in this process, without kernels."""

import json
from dataclasses import dataclass

import yaml
from small_dataset import write_dataset

from rag_lab.experiment.plan import plan
from rag_lab.experiment.run.variant_work import VariantWork
from rag_lab.memory.ledger import LEDGER_VARIABLE, PAYER_VARIABLE, Ledger
from rag_lab.models import shared
from rag_lab.models.providers import CHAT_MODELS, EMBEDDERS, QUERY_LIKELIHOODS
from rag_lab.pipeline import Pipeline
from rag_lab.testing import HashEmbedder, OverlapScorer, ScriptedChat

CHAT = "openai:chat?base_url=http://127.0.0.1:9/v1"
EMBEDDER = "sentence_transformers:minilm"
SCORER = "transformers:smollm2"
REPLY = {
    "class": "fuzzy",
    "hyde": True,
    "answer": "It is 290 bar.",
    "citations": [1],
    "reason": "r",
    "verdict": 1,
    "phrasings": ["a", "b"],
}


@dataclass
class Doubles:
    """The models of the plan; `chat.requests` and `scorer.pairs` hold what was asked."""

    chat: ScriptedChat
    embedder: HashEmbedder
    scorer: OverlapScorer


def install_doubles(monkeypatch, reply=None):
    """Put doubles where the registry keeps its models."""

    def say(request):
        asked = request.messages[-1].content.splitlines()[-1]
        return json.dumps(REPLY | {"rewritten": f"{asked} Tell me."} | (reply or {}))

    doubles = Doubles(ScriptedChat(say), HashEmbedder(), OverlapScorer())
    for kind, name, model in (
        (CHAT_MODELS, CHAT, doubles.chat),
        (EMBEDDERS, EMBEDDER, doubles.embedder),
        (QUERY_LIKELIHOODS, SCORER, doubles.scorer),
    ):
        monkeypatch.setitem(shared._NAMED, (kind.name, name, ""), model)
    return doubles


def write_plan(folder, extra_questions=(), **changes):
    """Write an experiment and return its plan; by default everything is switched off but retrieval and answers."""
    data = {
        "name": "small",
        "question": "Does it help?",
        "dataset": str(write_dataset(folder, extra_questions=extra_questions)),
        "base": {
            "models": {"generation": CHAT, "understanding": CHAT, "hyde": CHAT, "embedding": EMBEDDER},
            "retrieval": {"mode": "dense"},
            "answer": {"name": "llm"},
        },
        "factors": {"rerank.final_k": [2, 1]},
        "metrics": ["retrieval.mrr@10"],
    }
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(data | changes, sort_keys=False))
    return plan(path)


def run_in_process(checked, ledger: Ledger, monkeypatch):
    """Run and score every variant of a plan; calls are booked in `ledger`."""
    monkeypatch.setenv(LEDGER_VARIABLE, str(ledger.path))
    for variant in checked.variants:
        monkeypatch.setenv(PAYER_VARIABLE, variant.variant_id)
        run = VariantWork(
            pipeline=Pipeline(checked.dataset, variant.config),
            questions=checked.questions,
            answered=checked.answered,
            metrics=tuple(checked.experiment.metrics),
            judge=checked.experiment.judge,
            metric_embedding=checked.expansion.baseline.config.models.embedding,
            repeats=checked.experiment.repeats,
        )
        run.run()
        run.score()
        yield variant.variant_id, run
    monkeypatch.delenv(LEDGER_VARIABLE)


def calls_made(ledger):
    """Return the number of calls in a ledger by purpose."""
    made = {}
    for caller, n, _ in ledger.calls():
        made[caller.purpose] = made.get(caller.purpose, 0) + n
    return made
