"""Run folders in which each variant has scores and a price: seconds, and tokens and dollars of its chat model."""

from pathlib import Path

import numpy as np
import synthetic_run

from rag_lab.comparison.comparison import Comparison
from rag_lab.records import Question, StageRecord, Trace
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.trace_file import write_traces


def priced(path: Path, values, seconds, tokens=None, usd=None, metric=synthetic_run.MAIN, turn=1) -> Comparison:
    """Write and read a run of the variants of `values`; what they take is a number, or one a question.

    `turn=-1` writes the traces in the opposite order.
    """
    plans = {name: {"retrieval.base_k": 20 + number} for number, name in enumerate(values)}
    run = synthetic_run.write_run(path, plans, {metric: values})
    for name, scores in values.items():
        n = len(scores)
        took, read, paid = (np.broadcast_to((amount or {}).get(name, 0), n) for amount in (seconds, tokens, usd))
        traces = [
            Trace(
                Question(f"q{index}", f"Question {index}?", ("yes",)),
                stages=(
                    StageRecord("retrieve", seconds=float(took[index])),
                    StageRecord("generate", tokens_in=int(read[index]), cost_usd=float(paid[index])),
                ),
            )
            for index in range(n)
        ]
        write_traces(run.variant_dir(name) / "traces.jsonl", traces[::turn])
    return compare(run.path)


def certain(path: Path, n: int = 60) -> Comparison:
    """A is cheap, B far better and dearer, C dearer than B and worse than it; tokens as seconds, dollars of B and C."""
    base = np.random.default_rng(0).uniform(0.2, 0.4, n)
    return priced(
        path,
        {"a": base, "b": base + 0.3, "c": base + 0.1},
        {"a": 0.1, "b": 1.0, "c": 2.0},
        {"a": 100, "b": 1_000, "c": 2_000},
        {"b": 0.001, "c": 0.002},
    )


def uncertain(path: Path, n: int = 60) -> Comparison:
    """B is better than A in one question alone and takes the same; C is worse and dearer."""
    base = np.full(n, 0.5)
    better = base.copy()
    better[7] = 1.0
    return priced(path, {"a": base, "b": better, "c": base - 0.2}, {"a": 0.1, "b": 0.1, "c": 2.0})
