"""Reads a run folder into a `Comparison`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pandas as pd

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.stage_tables import latencies, stage_problems, stage_table
from rag_lab.data.clusters import clusters_of
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.records import Question, Trace
from rag_lab.runs.margins import with_margins
from rag_lab.runs.run_folder import RunFolder
from rag_lab.statistics.complete_cases import COMPARISON_COLUMNS, Pairs, comparisons, summary
from rag_lab.statistics.corrections import Correction
from rag_lab.statistics.noise_components import NoiseComponents, noise
from rag_lab.statistics.scales import Scale, scales_of

_GAP = ["variant_id", "metric", "status", "reason"]


def read_comparison(
    run_dir: Path | str,
    *,
    correction: Correction = "holm",
    pairs: Pairs = "baseline",
    margins: Mapping[str, float] | None = None,
) -> Comparison:
    """Read the run in `run_dir` and compare its variants, as `rag_lab.compare` does; `margins` are given post hoc.

    Raises:
        RagLabError: if the folder is no run, has no scores yet, or an option is unknown.
    """
    for kind, given, allowed in (("correction", correction, Correction), ("choice of pairs", pairs, Pairs)):
        if given not in get_args(allowed):
            raise ConfigError(unknown_name(kind, given, get_args(allowed)))
    run = with_margins(RunFolder.open(run_dir), margins or {})
    traces = _traces(run)
    scores = run.scores()
    metrics = list(dict.fromkeys([*run.metrics, *scores["metric"].unique()]))
    cost_metrics = tuple(metric for metric in metrics if _is_cost(run, metric))
    quality_metrics = tuple(metric for metric in metrics if metric not in cost_metrics)
    quality = scores[scores["metric"].isin(quality_metrics)]
    components = noise_by_metric(run, quality)
    asked, scales = _asked(traces), _scales(run, metrics, scores)
    clusters = clusters_of(asked.values(), run.clusters)
    return Comparison(
        run=run,
        manifest=run.manifest(),
        quality_metrics=quality_metrics,
        cost_metrics=cost_metrics,
        correction=correction,
        pairs=pairs,
        traces=traces,
        scores=scores,
        summary=summary(scores, clusters=clusters, scales=scales),
        differences=_differences(quality, run.baseline, correction, pairs, components, clusters, scales),
        questions=_questions(run, scores, next(iter(quality_metrics), ""), asked),
        stages=stage_table(traces),
        stage_problems=stage_problems(traces),
        gaps=_gaps(scores),
        latency=latencies(traces),
        noise=components,
        scales=scales,
        clusters=clusters,
    )


def _traces(run: RunFolder) -> dict[str, list[Trace]]:
    """Return the traces of each variant; what variants know of a question alike is held once."""
    known: dict[Question, Question] = {}
    return {
        plan.variant_id: [
            replace(trace, question=known.setdefault(trace.question, trace.question))
            for trace in run.traces(plan.variant_id)
        ]
        for plan in run.variants
    }


def noise_by_metric(run: RunFolder, quality: pd.DataFrame) -> dict[str, NoiseComponents]:
    """Return the components of each quality metric, or nothing where no question was asked twice."""
    return {str(metric): noise(quality, metric) for metric in quality["metric"].unique()} if run.repeats > 1 else {}


def _differences(
    quality: pd.DataFrame,
    baseline: str,
    correction: Correction,
    pairs: Pairs,
    components: Mapping[str, NoiseComponents],
    clusters: Mapping[str, str] | None,
    scales: Mapping[str, Scale],
) -> pd.DataFrame:
    variants = set(quality["variant_id"])
    if not variants or (baseline not in variants and pairs == "baseline"):
        return pd.DataFrame(columns=list(COMPARISON_COLUMNS))
    first = baseline if baseline in variants else str(quality["variant_id"].iloc[0])
    return comparisons(
        quality, first, pairs=pairs, correction=correction, noise=components, clusters=clusters, scales=scales
    )


def _is_cost(run: RunFolder, metric: str) -> bool:
    info = run.metric(metric)
    return info is not None and info.is_cost


def _scales(run: RunFolder, metrics: Sequence[str], scores: pd.DataFrame) -> dict[str, Scale]:
    """Return the scale of each metric that is known, without a bound that a score lies beyond."""
    infos = {metric: info for metric in metrics if (info := run.metric(metric)) is not None}
    known = {metric: Scale(info.low, info.high, info.higher_is_better) for metric, info in infos.items()}
    found = scales_of(scores, known)
    return {metric: found.get(metric, scale) for metric, scale in known.items()}


def _asked(traces: Mapping[str, list[Trace]]) -> dict[str, Question]:
    return {trace.question.question_id: trace.question for one in traces.values() for trace in one}


def _questions(run: RunFolder, scores: pd.DataFrame, main: str, asked: Mapping[str, Question]) -> pd.DataFrame:
    values = scores[(scores["metric"] == main) & (scores["status"] == "scored")].astype({"value": float})
    wide = values.pivot_table(index="question_id", columns="variant_id", values="value", aggfunc="mean")
    wide = wide.reindex(index=list(asked), columns=[plan.variant_id for plan in run.variants])
    table = wide.assign(spread=wide.max(axis=1) - wide.min(axis=1)).reset_index(names="question_id")
    table.insert(1, "query_class", [question.query_class for question in asked.values()])
    table.insert(2, "question", [question.text for question in asked.values()])
    return table


def _gaps(scores: pd.DataFrame) -> pd.DataFrame:
    missing = scores[scores["status"] != "scored"].fillna({"reason": ""})
    counted = missing.groupby(_GAP, sort=False).size().reset_index(name="count")
    return counted.sort_values("count", ascending=False, kind="stable", ignore_index=True)
