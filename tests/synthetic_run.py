"""Run folders with given scores: grids, HyDE studies, repeats, ties, failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from rag_lab.config import PipelineConfig
from rag_lab.records import QueryClass, Question, Score, StageRecord, Trace
from rag_lab.runs.run_folder import RunFolder, VariantPlan, write_json
from rag_lab.runs.score_file import write_scores
from rag_lab.runs.trace_file import write_traces

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
