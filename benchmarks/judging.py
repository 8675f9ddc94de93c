"""How busy judging keeps a judge, and how many calls it makes beside RAGAs' own `evaluate`; prints JSON.

A loopback server, in a process of its own as any server is, answers each call after a fixed latency L, and C calls are
made at a time. Two variants answer the same questions over passages that they partly share. Targets: with N distinct
calls, wall time at most 1.15 x N x L / C; fewer calls than RAGAs on the same samples; the same values.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_lab.evaluation.evaluate import evaluate
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.records import Answer, Passage, Question, StageRecord, Trace

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from loopback_models import Scripted, openai_server

METRICS = ["ragas.faithfulness", "ragas.context_precision", "ragas.context_recall"]
N_PASSAGES = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--latency", type=float, default=0.25, help="seconds a call takes")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.latency)
        return
    warnings.simplefilter("ignore")
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    traces = [make_trace(number, variant) for variant in "ab" for number in range(options.questions)]
    warm_up(traces[0])
    ours = run_ours(traces, options.latency, options.concurrency)
    theirs = run_ragas(traces, options.latency, options.concurrency)
    bound = 1.15 * ours["calls"] * options.latency / options.concurrency
    difference = max(abs(a - b) for a, b in zip(ours.pop("values"), theirs.pop("values"), strict=True))
    report = {
        "benchmark": "judging",
        "questions": options.questions,
        "variants": 2,
        "metrics": METRICS,
        "latency_s": options.latency,
        "concurrency": options.concurrency,
        "ours": ours,
        "ragas": theirs,
        "bound_s": round(bound, 2),
        "share_of_ideal": round(ours["wall_s"] / (bound / 1.15), 3),
        "largest_difference": difference,
        "passes": ours["wall_s"] <= bound and ours["calls"] < theirs["calls"] and difference < 1e-6,
    }
    print(json.dumps(report, indent=2))


def make_trace(number: int, variant: str) -> Trace:
    """Return a trace whose variant found two passages that the other one also found, and two of its own."""
    facts = [f"Part {number} weighs {number + 10} kg.", f"Part {number} is made of steel."]
    shared = [facts[0], f"Part {number + 500} is red."]
    own = [facts[1] if variant == "a" else f"Part {number + 600} is {variant}.", f"Note {number} of {variant}."]
    question = Question(f"q{number}", f"What is known of part {number}?", (" ".join(facts),))
    said = facts[1] if variant == "a" else f"Part {number} is hollow."
    passages = tuple(
        Passage(place, f"{variant}{number}:{place}", "parts.txt", None, 0, len(text), text)
        for place, text in enumerate([*shared, *own], 1)
    )
    stages = (StageRecord("context"), StageRecord("generate"))
    return Trace(question, passages=passages, answer=Answer(f"{facts[0]} {said}"), stages=stages)


def warm_up(trace: Trace) -> None:
    """Import what both sides import, so that neither is charged with it."""
    run_ours([trace], 0.0, 1)
    run_ragas([trace], 0.0, 1)


def run_ours(traces: list[Trace], latency_s: float, concurrency: int) -> dict[str, Any]:
    with serving(latency_s) as server:
        model = OpenAIChat("loopback", base_url=server.url, concurrency=concurrency)
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            scores = evaluate(traces, METRICS, judge=model, memory=Path(folder) / "scores.sqlite")
            wall_s = time.perf_counter() - started
    prompts = server.prompts
    failed = {score.reason for score in scores if score.value is None}
    if failed:
        raise SystemExit(f"scores failed: {failed}")
    return {
        "wall_s": round(wall_s, 2),
        "calls": len(prompts),
        "distinct": len(set(prompts)),
        "values": [score.value for score in scores],
    }


def run_ragas(traces: list[Trace], latency_s: float, concurrency: int) -> dict[str, Any]:
    from langchain_openai import ChatOpenAI
    from ragas import EvaluationDataset, SingleTurnSample
    from ragas import evaluate as ragas_evaluate
    from ragas.llms import LangchainLLMWrapper
    from ragas.metrics import Faithfulness, LLMContextPrecisionWithReference, LLMContextRecall
    from ragas.run_config import RunConfig

    samples = [
        SingleTurnSample(
            user_input=trace.question.text,
            response=trace.answer.text if trace.answer else "",
            reference=trace.question.answers[0],
            retrieved_contexts=[passage.text for passage in trace.passages],
        )
        for trace in traces
    ]
    with serving(latency_s) as server:
        model = ChatOpenAI(model="loopback", api_key="none", base_url=server.url, max_retries=0)
        metrics = [Faithfulness(), LLMContextPrecisionWithReference(), LLMContextRecall()]
        started = time.perf_counter()
        result = ragas_evaluate(
            EvaluationDataset(samples),
            metrics=metrics,
            llm=LangchainLLMWrapper(model),
            run_config=RunConfig(max_workers=concurrency),
            show_progress=False,
        )
        wall_s = time.perf_counter() - started
    values = [score[metric.name] for metric in metrics for score in result.scores]
    return {"wall_s": round(wall_s, 2), "calls": len(server.prompts), "values": values}


@dataclass
class Served:
    """A server elsewhere. `prompts` is what it was asked, known when it has ended."""

    url: str
    prompts: list[str] = field(default_factory=list)


@contextmanager
def serving(latency_s: float) -> Iterator[Served]:
    command = [sys.executable, __file__, "--serve", "--latency", str(latency_s)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        server = Served(process.stdout.readline().strip())
        yield server
        server.prompts += json.loads(process.communicate()[0])


def serve(latency_s: float) -> None:
    """Serve until the standard input ends: print the address at once, and the prompts at the end."""
    with openai_server(lambda body: Scripted(judge(body), delay_s=latency_s)) as server:
        print(server.url, flush=True)
        sys.stdin.read()
        print(json.dumps([body["messages"][-1]["content"] for body in server.bodies]))


def judge(body: dict[str, Any]) -> str:
    """Judge by words, whichever interface of RAGAs asks: a statement holds where all its words stand in the text."""
    prompt = body["messages"][-1]["content"]
    given = json.JSONDecoder().raw_decode(prompt, prompt.rindex("{", 0, prompt.rindex("\n}") + 1))[0]
    if "statements" in given:
        held = [(text, words(text) <= words(given["context"])) for text in given["statements"]]
        return json.dumps({"statements": [{"statement": s, "reason": "r", "verdict": int(ok)} for s, ok in held]})
    if "context" in given and "classifications" in prompt:
        held = [(text, words(text) <= words(given["context"])) for text in sentences(given["answer"])]
        marks = [{"statement": s, "reason": "r", "attributed": int(ok)} for s, ok in held]
        return json.dumps({"classifications": marks})
    if "context" in given:
        useful = any(words(text) <= words(given["context"]) for text in sentences(given["answer"]))
        return json.dumps({"reason": "r", "verdict": int(useful)})
    return json.dumps({"statements": sentences(given["answer"])})


def sentences(text: str) -> list[str]:
    return re.findall(r"[^.]+\.", text.strip())


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


if __name__ == "__main__":
    main()
