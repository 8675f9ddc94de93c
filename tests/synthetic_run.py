"""Run folders with given scores: grids, HyDE studies, repeats, ties, failures, and what each variant costs."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from rag_lab.comparison.comparison import Comparison
from rag_lab.config import PipelineConfig
from rag_lab.records import QueryClass, Question, Score, StageRecord, Trace
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.run_folder import RunFolder, VariantPlan, write_json
from rag_lab.runs.variant_files import write_scores, write_traces

MAIN = "retrieval.ndcg@5"
Values = Mapping[str, Any]  # variant_id to (n,) or (repeats, n) scores; NaN is a failure
HYDE, RERANK = "query.hyde", "rerank.name"
GRID = {
    f"{hyde}-{rerank}": {HYDE: hyde, RERANK: rerank}
    for hyde, rerank in product(["none", "always"], ["none", "query_likelihood"])
}


def write_run(
    path: Path,
    plans: Mapping[str, Mapping[str, Any]],
    metrics: Mapping[str, Values],
    labelled: Sequence[QueryClass | None] = (),
    predicted: Sequence[QueryClass | None] = (),
    judge: str = "",
    base: PipelineConfig | None = None,
    design: str = "",
) -> RunFolder:
    """Write a run of the variants `plans` (the first is the baseline) with the scores `metrics`."""
    columns = {metric: {v: np.atleast_2d(rows) for v, rows in values.items()} for metric, values in metrics.items()}
    repeats, n = next(iter(next(iter(columns.values())).values())).shape
    base = base or PipelineConfig().override({HYDE: "none", RERANK: "none"})
    baseline = next(iter(plans))
    run = RunFolder(
        path=path,
        name="synthetic",
        question="What holds?",
        dataset="made_up",
        baseline=baseline,
        metrics=tuple(metrics),
        repeats=repeats,
        variants=tuple(VariantPlan(name, name, _changes(base, changes)) for name, changes in plans.items()),
        questions=tuple(f"q{index}" for index in range(n)),
        design=design,
    )
    run.write_plan()
    asked = [_question(index, labelled[index] if labelled else None) for index in range(n)]
    for name, changes in plans.items():
        run.variant_dir(name).mkdir(parents=True)
        (run.variant_dir(name) / "config.yaml").write_text(base.override(changes).to_yaml())
        classes = predicted or [None] * n
        traces = [
            Trace(one, repeat, query_class=classes[index], stages=(StageRecord("retrieve", seconds=0.1),))
            for repeat in range(repeats)
            for index, one in enumerate(asked)
        ]
        write_traces(run.variant_dir(name) / "traces.jsonl", traces)
    write_scores(path / "scores.parquet", {name: _scores(name, columns, judge) for name in plans})
    write_json(path / "manifest.json", {"name": "synthetic", "variants": {name: {"status": "ok"} for name in plans}})
    return run


def _changes(base: PipelineConfig, changes: Mapping[str, Any]) -> dict[str, Any]:
    flat = base.flat()
    return {key: value for key, value in changes.items() if value != flat[key]}


def _question(index: int, label: QueryClass | None) -> Question:
    return Question(f"q{index}", f"Question {index}?", ("yes",), query_class=label, tags=("even",) * (index % 2 == 0))


def _scores(name: str, columns: Mapping[str, Values], judge: str) -> list[Score]:
    return [
        Score(f"q{index}", metric, None, "failed", "the reply is empty", repeat, judge)
        if np.isnan(value)
        else Score(f"q{index}", metric, float(value), repeat=repeat, judge=judge)
        for metric, values in columns.items()
        if name in values
        for (repeat, index), value in np.ndenumerate(values[name])
    ]


def factorial(n: int = 60, noise: float = 0.03) -> dict[str, Any]:
    """HyDE adds 0.08 alone and nothing beside the reranker, which adds 0.1."""
    random = np.random.default_rng(3)
    difficulty = random.uniform(0.2, 0.7, n)
    gains = dict(zip(GRID, (0.0, 0.1, 0.08, 0.1), strict=True))
    return {variant: difficulty + gain + random.normal(0, noise, n) for variant, gain in gains.items()}


def priced(path: Path, values, seconds, tokens=None, usd=None, metric=MAIN, turn=1) -> Comparison:
    """Write and read a run of the variants of `values`; what they take is a number, or one a question.

    `turn=-1` writes the traces in the opposite order.
    """
    plans = {name: {"retrieval.base_k": 20 + number} for number, name in enumerate(values)}
    run = write_run(path, plans, {metric: values})
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
