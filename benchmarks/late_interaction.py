"""What reranking by MaxSim buys and costs on one labelled dataset, with the packaged MiniLM, as JSON on stdout.

    python benchmarks/late_interaction.py DATASET [--questions N] [--modes bm25 dense hybrid] [--blends 0 0.5 1]
    python benchmarks/late_interaction.py DATASET --modes dense late hybrid late+bm25 --blends
    python benchmarks/late_interaction.py --search 1000 5000 25000

DATASET is a name or path that `rag-lab datasets list` or `import` gave. For each mode it prints nDCG@10 of the search,
and what reranking its first 20 adds by each weight of the search score, with a 95% interval over the questions; then
the processor seconds a question once its passages are remembered, and the bytes of a passage's vectors beside its
pooled one. It works in a folder of its own, so nothing is remembered from before. With `--search` it prints the seconds
that one question takes in the mode `late` by number of chunks, of 60 random vectors with 384 dimensions each.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rag_lab._kit.machine import bytes_on_disk
from rag_lab.data.dataset import Dataset
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.memory.results import INT8, opened_memory
from rag_lab.models import shared
from rag_lab.models.protocols import Vectors, unit_vectors
from rag_lab.pipeline import Pipeline
from rag_lab.records import Chunk, Trace
from rag_lab.stores import encoded

METRIC, CANDIDATES, TIMED = "retrieval.ndcg@10", 20, 40
_HEAD_BYTES = 8  # seconds, before the vectors


def scores_of(traces: Sequence[Trace]) -> dict[str, float]:
    return {score.question_id: score.value for score in evaluate(traces, [METRIC]) if score.value is not None}


def gain(before: dict[str, float], after: dict[str, float]) -> dict[str, Any]:
    differences = np.array([after[name] - before[name] for name in before])
    draws = np.random.default_rng(0).choice(differences, (2000, len(differences))).mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    return {"gain": round(float(differences.mean()), 4), "interval": [round(float(low), 4), round(float(high), 4)]}


def seconds_a_question(pipeline: Pipeline, traces: Sequence[Trace]) -> float:
    """Return what the scorer takes of the processor for a question that is new, of passages that are remembered."""
    scorer = shared.scorer("late_interaction", pipeline.config.models.late_interaction)
    texts = [[pipeline.index.chunks.child(hit.chunk_id).text for hit in trace.candidates] for trace in traces]
    started = time.process_time()
    for trace, passages in zip(traces, texts, strict=True):
        scorer.score([(trace.question.text + " ", passage) for passage in passages])
    return (time.process_time() - started) / len(traces)


def times_the_disk() -> float:
    """Return the bytes of a text's int8 vectors by those of the pooled vector of one, on average."""
    with opened_memory("vectors") as store:
        values = [value for (value,) in store.execute("SELECT value FROM remembered")]
    tokens = [len(value) for value in values if value[_HEAD_BYTES:].startswith(INT8)]
    pooled = [len(value) for value in values if not value[_HEAD_BYTES:].startswith(INT8)]
    return float(np.mean(tokens) / np.mean(pooled))


class RandomTokens:
    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def token_vectors(self, kind: str, texts: Sequence[str]) -> list[Vectors]:
        n = 60 if kind == "document" else 16
        return [unit_vectors(self._random.standard_normal((n, 384), dtype=np.float32)) for _ in texts]


def seconds_a_search(n: int, folder: Path) -> dict[str, float]:
    """Return the best of five, on the clock and of the processor: others work on the machine, too."""
    encoded.LateIndex.most = n
    chunks = [Chunk(f"a#0-9/{number}", "a#0-9", "a", None, 0, 9, "") for number in range(n)]
    encoded.LateIndex.write(folder / str(n), RandomTokens(), chunks)
    index, took = encoded.LateIndex(folder / str(n), RandomTokens()), []
    for _ in range(6):  # the first reads the file
        clock, processor = time.perf_counter(), time.process_time()
        index.find(["?"], None)([0], 20)
        took.append((time.perf_counter() - clock, time.process_time() - processor))
    seconds = {"clock": round(min(one for one, _ in took), 3), "processor": round(min(one for _, one in took), 3)}
    return seconds | {"MB": round(bytes_on_disk(folder / str(n)) / 1e6, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", default="plant_docs")
    parser.add_argument("--search", nargs="+", type=int)
    parser.add_argument("--questions", type=int)
    parser.add_argument("--modes", nargs="+", default=["bm25", "dense", "hybrid"])
    parser.add_argument("--blends", nargs="*", type=float, default=[0.0, 0.5, 1.0])
    parser.add_argument("--pool", type=int, default=2)
    given = parser.parse_args()
    if given.search:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps({n: seconds_a_search(n, Path(folder)) for n in given.search}, indent=1))
        return
    dataset = Dataset.load(Path(given.dataset) if Path(given.dataset).is_dir() else given.dataset)
    asked = [question for question in dataset.questions if question.evidence][: given.questions]
    model = f"sentence_transformers:minilm?pool={given.pool}"
    changes = {"answer.name": "none", "rerank.final_k": 10, "rerank.input_limit": CANDIDATES}
    results: dict[str, Any] = {}
    first: dict[str, float] = {}  # scores of the first mode
    with tempfile.TemporaryDirectory() as home:
        os.environ["RAG_LAB_HOME"] = home
        alone = Pipeline(dataset).set(changes | {"models.late_interaction": model})
        for mode in given.modes:
            pipeline = alone.set("retrieval.mode", mode)
            traces = pipeline.run(asked, answer=(), read=lambda _: ())
            before = scores_of(traces)
            found: dict[str, Any] = {"search": round(float(np.mean([*before.values()])), 4)}
            for blend in given.blends:
                reranked = pipeline.set({"rerank.name": "maxsim", "rerank.blend": blend})
                after = scores_of(reranked.run(asked, answer=(), read=lambda _: ()))
                found[f"blend {blend:g}"] = gain(before, after)
            if given.blends:
                found["processor_seconds"] = round(seconds_a_question(pipeline, traces[:TIMED]), 3)
            else:
                first = first or before
                found |= gain(first, before)
            results[mode] = found
        disk = round(times_the_disk(), 1) if given.blends else None
    print(json.dumps({"dataset": dataset.name, "questions": len(asked), "disk": disk, "modes": results}, indent=1))


if __name__ == "__main__":
    main()
