"""Reads a run folder into a `Comparison`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pandas as pd

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.tables.bounds import Read, without_known_questions
from rag_lab.comparison.tables.comparable import withheld
from rag_lab.comparison.tables.effects import planned_effects
from rag_lab.comparison.tables.hyde_study import planned_studies
from rag_lab.comparison.tables.stage_tables import latencies, stage_problems, stage_table
from rag_lab.data.sampling import clusters_of
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.records import Question
from rag_lab.runs.margins import with_margins
from rag_lab.runs.run_folder import RunFolder
from rag_lab.runs.trace_file import Questions
from rag_lab.statistics.families import answers
from rag_lab.statistics.noise_components import noise
from rag_lab.statistics.pairwise import COMPARISON_COLUMNS, Pairs, differences_table, pairs_among, score_pairs
from rag_lab.statistics.randomization import Correction, check_correction
from rag_lab.statistics.scales import scales_of
from rag_lab.statistics.summaries import summary

_GAP = ["variant_id", "metric", "status", "reason"]


def read_comparison(
    run_dir: Path | str,
    *,
    correction: Correction = "max_t",
    pairs: Pairs = "baseline",
    margins: Mapping[str, float] | None = None,
    without_known: float | None = None,
) -> Comparison:
    """Read the run in `run_dir` and compare its variants, as `rag_lab.compare` does; `margins` are given post hoc.

    Raises:
        RagLabError: if the folder is no run, has no scores yet, or an option is unknown.
    """
    check_correction(correction)
    if pairs not in get_args(Pairs):
        raise ConfigError(unknown_name("choice of pairs", pairs, get_args(Pairs)))
    run = with_margins(RunFolder.open(run_dir), margins or {})
    known: Questions = {}  # what variants know of a question alike is stored once
    read = Read(run, {plan.variant_id: run.traces(plan.variant_id, known) for plan in run.variants}, run.scores())
    if without_known is not None:
        read = without_known_questions(read, without_known)
    run, traces, scores = read.run, read.traces, read.scores
    metrics = list(dict.fromkeys([*run.metrics, *scores["metric"].unique()]))
    infos = {metric: info for metric in metrics if (info := run.metric(metric)) is not None}
    cost_metrics = tuple(metric for metric, info in infos.items() if info.is_cost)
    quality_metrics = tuple(metric for metric in metrics if metric not in cost_metrics)
    quality = scores[scores["metric"].isin(quality_metrics)]
    asked = {trace.question.question_id: trace.question for one in traces.values() for trace in one}
    known_scales = {metric: info.scale for metric, info in infos.items()}
    found = scales_of(scores, known_scales)  # without a bound that a score lies beyond
    scales = {metric: found.get(metric, scale) for metric, scale in known_scales.items()}
    clusters = clusters_of(asked.values(), run.clusters)
    missing = scores[scores["status"] != "scored"].fillna({"reason": ""})
    gaps = missing.groupby(_GAP, sort=False).size().reset_index(name="count")
    repeated = quality["metric"].unique() if run.repeats > 1 else ()
    return with_answers(
        Comparison(
            run=run,
            manifest=run.manifest(),
            quality_metrics=quality_metrics,
            cost_metrics=cost_metrics,
            correction=correction,
            pairs=pairs,
            traces=traces,
            scores=scores,
            summary=summary(scores, clusters=clusters, scales=scales),
            differences=pd.DataFrame(columns=list(COMPARISON_COLUMNS)),
            answers={},
            questions=_questions(run, scores, next(iter(quality_metrics), ""), asked),
            stages=stage_table(traces),
            stage_problems=stage_problems(traces),
            gaps=gaps.sort_values("count", ascending=False, kind="stable", ignore_index=True),
            latency=latencies(traces),
            noise={str(metric): noise(quality, metric) for metric in repeated},
            scales=scales,
            clusters=clusters,
        )
    )


def with_answers(tables: Comparison) -> Comparison:
    """Return the comparison with its differences: all that will be shown of it is tested at once."""
    run, scores, effects = tables.run, tables.quality_scores, planned_effects(tables)
    scored = set(scores["variant_id"])
    variants = [plan.variant_id for plan in tables.variants if plan.variant_id in scored]
    if tables.pairs == "all":
        wanted = pairs_among(variants, "all")
    else:  # those declared, and those with the baseline
        wanted = [*run.pairs, *((variant, run.baseline) for variant in variants if variant != run.baseline)]
    declared = set() if effects.is_grid else set(run.pairs)  # in a grid, effects are primary, and no pair of variants
    pairs = []
    for one in score_pairs(scores, [p for p in dict.fromkeys(wanted) if scored.issuperset(p)], tables.main_metric):
        variants_of = (one.variant_id, one.against)
        is_primary = one.is_primary and variants_of in declared
        pairs.append(replace(one, is_primary=is_primary, withheld=withheld(tables, one.metric, variants_of)))
    hypotheses = [
        *(pair.hypothesis for pair in pairs if not pair.withheld),
        *(effect.hypothesis for effect in effects.planned),
        *(pair.hypothesis for study in planned_studies(tables) for pair in study.pairs),
    ]
    found = answers(scores, hypotheses, tables.options) if hypotheses else {}
    return replace(tables, answers=found, differences=differences_table(pairs, found))


def _questions(run: RunFolder, scores: pd.DataFrame, main: str, asked: Mapping[str, Question]) -> pd.DataFrame:
    values = scores[(scores["metric"] == main) & (scores["status"] == "scored")].astype({"value": float})
    wide = values.pivot_table(index="question_id", columns="variant_id", values="value", aggfunc="mean")
    wide = wide.reindex(index=list(asked), columns=[plan.variant_id for plan in run.variants])
    table = wide.assign(spread=wide.max(axis=1) - wide.min(axis=1)).reset_index(names="question_id")
    table.insert(1, "query_class", [question.query_class for question in asked.values()])
    table.insert(2, "question", [question.text for question in asked.values()])
    return table
