"""Plans and sweeps on the small dataset whose models are doubles or none, and their runs without kernels."""

import gc
import json
from dataclasses import dataclass
from pathlib import Path

import yaml
from pytest import MonkeyPatch
from small_dataset import write_dataset

from rag_lab.config import PipelineConfig
from rag_lab.data.dataset import STATES_VARIABLE, Dataset
from rag_lab.experiment.executors.local import Done
from rag_lab.experiment.plan import plan
from rag_lab.experiment.run.sweep import sweep
from rag_lab.experiment.run.variant_work import VariantWork
from rag_lab.memory.ledger import LEDGER_VARIABLE, PAYER_VARIABLE, Ledger
from rag_lab.models import shared
from rag_lab.models.local.local_model import LocalModel
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


QUOTES = {
    "press.md": ["The relief valve of press P-1 opens at 290 bar", "The oil is changed every 2,000 hours"],
    "oven.txt": ["The curing oven runs at 180 degrees Celsius", "Alarm A7 means that the burner is locked out"],
    "canteen.txt": ["The canteen opens at 11:30 and closes at 14:00", "On Fridays there is fish"],
    "notes/shift.txt": ["the oven tripped twice", "The press ran without a stop"],
}


def many_questions(n, answers=True):
    """Return `n` questions on the four documents, two in the same words standing in different documents."""
    places = [(source, quote) for source, quotes in QUOTES.items() for quote in quotes]
    return [
        {
            "id": f"r{number:03}",
            "question": f"{places[number % 8][1]}, case {number}?",
            "answers": ["yes"],
            "class": "specific" if number % 2 else "fuzzy",
            "tags": [f"item-{number // 4}"],
            "evidence": [{"source": places[number % 8][0], "quote": places[number % 8][1]}],
        }
        for number in range(n)
    ]


def race_plan(folder, n_asked=57, **changes):
    """Write a race of four variants in rounds of 12 and 20 questions; 60 questions can be measured."""
    return write_plan(
        folder,
        many_questions(n_asked),
        **{
            "design": "racing",
            "factors": {"retrieval.mode": ["dense", "bm25", "tfidf", "rrf"]},
            "race": {"rounds": [12, 20]},
            "metrics": ["retrieval.mrr@1", "retrieval.ndcg@5"],
        }
        | changes,
    )


FACTORS = {"rerank.final_k": [5, 3, 2, 1]}


def write_machines_sweep(folder, dataset_in=None, **changes):
    """Write four variants that search four documents by BM25, and return the experiment's path."""
    data = {
        "name": "small",
        "question": "Does it help?",
        "dataset": str(write_dataset(dataset_in or folder)),
        "base": {
            "query": {"rewrite": "none", "hyde": "none"},
            "retrieval": {"mode": "bm25"},
            "answer": {"name": "none"},
        },
        "factors": FACTORS,
        "metrics": ["retrieval.mrr@10", "retrieval.ndcg@5"],
    }
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(data | changes, sort_keys=False))
    return path


def values(run):
    """The scores of a run, without what depends on the machine."""
    scores = run.scores().sort_values(["variant_id", "question_id", "metric"])
    kept = scores[["variant_id", "question_id", "metric", "status", "value"]].astype(object)
    return kept.where(kept.notna(), None).to_dict("records")  # what is no number equals nothing


def run_jobs_here(monkeypatch, after=lambda job: ""):
    """Let `run_variants` do its jobs here and return the list of (folder, variant) that were run.

    `after` gets each job that has been done, may spoil what it left or raise, and returns why it failed.
    """
    done = []

    def execute(jobs, n_jobs=1, poll=lambda running: None, veto=lambda job, runs: ""):
        for job in jobs:
            if reason := veto(job, False):
                yield Done(job, reason, 0.0, vetoed=True)
                continue
            for name in (LEDGER_VARIABLE, PAYER_VARIABLE, STATES_VARIABLE):
                monkeypatch.setenv(name, job.environment[name])
            _work(job.parameters)
            done.append((Path(job.parameters["QUESTIONS"]).parent.name, job.name))
            _forget_models()
            yield Done(job, after(job), 1.0)

    monkeypatch.setattr("rag_lab.experiment.executors.launchers.executor_of", lambda name, slurm=(): execute)
    return done


def values_here(path, out):
    """The scores of a sweep whose variants run in this process: what other ways of running are compared with."""
    with MonkeyPatch.context() as patch:
        run_jobs_here(patch)
        patch.setattr("rag_lab.report.page.report_page.write_report", lambda path, **_: path)
        return values(sweep(path, out, progress=False))


def _forget_models(most=2):
    """Let go of local chat models but the newest ones: a variant's kernel would have ended with its own."""
    held = [key for key, model in shared._NAMED.items() if key[0] == "chat model" and isinstance(model, LocalModel)]
    for key in held[:-most]:
        del shared._NAMED[key]
    if held[:-most]:
        gc.collect()


def _work(given):
    plan = json.loads(Path(given["QUESTIONS"]).read_text())
    work = VariantWork(
        pipeline=Pipeline(Dataset.load(Path(given["DATASET"])), PipelineConfig.load(given["CONFIG"])),
        questions=tuple(plan["questions"]),
        answered=tuple(plan["answered"]),
        metrics=tuple(given["METRICS"].split(",")),
        judge=given["JUDGE"] or None,
        judge_language=given["JUDGE_LANGUAGE"],
        metric_embedding=given["METRIC_EMBEDDING"],
        repeats=given["REPEATS"],
        out=Path(given["OUT"]),
    )
    work.run()
    work.score()
    work.save()
