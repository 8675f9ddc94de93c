"""Variants that read nothing, labelled evidence or its files: how far answers can get, and who reaches what of it.

Three of them read labels, which nobody has of a new question, so none can be recommended.

Why an answer is wrong they say by the counterfactual: the same reader with the labelled evidence alone, and on top.
*Missing*: the reader is right with the evidence alone, and right where it stands on top of what was found. *Crowded
out*: right with the evidence alone, and wrong with what was found below it. *Ignored*: wrong with the evidence alone.
Without a variant that reads both, evidence that reached the reader was crowded out, and other evidence was missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import pandas as pd

from rag_lab._kit.wording import plain
from rag_lab.comparison.tables.evidence import Waterfall
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.records import Trace
from rag_lab.runs.run_folder import RunFolder
from rag_lab.statistics.intervals import Interval
from rag_lab.statistics.shares import gain_share
from rag_lab.statistics.summaries import cluster_labels, exact_mean, per_question

FLOOR, CEILING, BOTH = "none", "gold", "gold_first"  # of `answer.context`
BOUNDS: Mapping[str, str] = {
    FLOOR: "nothing",
    CEILING: "the labelled evidence",
    BOTH: "the labelled evidence on top of what was found",
    "document": "the files of the labelled evidence",
}
_OF_CONTEXT = ("answer.context", "answer.context_tokens", "answer.context_bytes")
Read = tuple[RunFolder, Mapping[str, list[Trace]], pd.DataFrame]  # a run, its traces by variant, its scores


def bound_arms(tables: RunTables) -> dict[str, str]:
    """Return the variants that are bounds, each with its `answer.context`."""
    contexts = {variant: config.answer.context for variant, config in tables.pipelines.items()}
    return {variant: context for variant, context in contexts.items() if context in BOUNDS}


def bound_of(tables: RunTables, variant_id: str, context: str) -> str | None:
    """Return the bound of this kind that has the reader of a variant, with its budget where there is one; else None."""
    configs = tables.pipelines
    if variant_id not in configs:
        return None
    budget = {one: (config.answer.context_tokens, config.answer.context_bytes) for one, config in configs.items()}
    reader = _reader(configs[variant_id])
    arms = [one for one, kind in bound_arms(tables).items() if kind == context]
    found = [one for one in arms if _reader(configs[one]) == reader]
    return min(found, key=lambda one: budget[one] != budget[variant_id], default=None)


def _reader(config: PipelineConfig) -> dict[str, Any]:
    """Return what decides how a context is answered from."""
    flat, is_extractive = config.flat(), config.answer.name == "extract"
    keys = [key for key in flat if key.startswith("answer.") and key not in _OF_CONTEXT]
    if is_extractive:
        keys = [key for key in keys if key.startswith(("answer.name", "answer.quote_"))] + ["models.embedding"]
    else:
        keys = [key for key in keys if not key.startswith("answer.quote_")] + ["models.generation", "seed"]
    return {key: flat[key] for key in keys}


@dataclass(frozen=True, slots=True)
class Reach:
    """What one variant reaches in one metric, on the questions that it and its two bounds have scores on.

    floor, ceiling: the variants with its reader that read nothing, and the labelled evidence; None where there is none.
    means: of the floor, the variant and the ceiling; None without questions.
    """

    variant_id: str
    metric: str
    floor: str | None
    ceiling: str | None
    means: tuple[float, float, float] | None
    found: Interval


def reachable_gain(tables: RunTables) -> tuple[Reach, ...]:
    """Return a row a metric that reads answers and variant, in the order of the plan; empty where nothing is a bound.

    The files of the labelled evidence are an arm beside the others: what of the gain is left where a reader has to find
    the place in them.
    """
    arms, metrics = bound_arms(tables), answer_metrics(tables)
    if not {FLOOR, CEILING} & set(arms.values()):
        return ()
    bounds = {one for one, kind in arms.items() if kind in (FLOOR, CEILING)}
    scores, found = per_question(tables.scores, metrics), []
    for metric in metrics:
        cells = scores[scores["metric"] == metric]
        wide = cells.pivot(index="question_id", columns="variant_id", values="mean").sort_index()
        ids = [plan.variant_id for plan in tables.variants if plan.variant_id in wide]
        found += [_reach(tables, metric, variant, wide) for variant in ids if variant not in bounds]
    return tuple(found)


def answer_metrics(tables: RunTables) -> list[str]:
    """Return the quality metrics that read answers, in the order of the plan: in others a bound is blind."""
    infos = {metric: tables.run.metric(metric) for metric in tables.quality_metrics}
    return [metric for metric, info in infos.items() if info is not None and info.reads_answers]


def _reach(tables: RunTables, metric: str, variant: str, wide: pd.DataFrame) -> Reach:
    floor, ceiling = (bound_of(tables, variant, kind) for kind in (FLOOR, CEILING))
    reason = ""
    if floor is None or ceiling is None:
        missing = [BOUNDS[kind] for kind, one in ((FLOOR, floor), (CEILING, ceiling)) if one is None]
        reason = f"no variant with its reader reads {' or '.join(missing)}"
    elif without := [one for one in (floor, ceiling) if one not in wide or wide[one].isna().all()]:
        gaps = tables.gaps[(tables.gaps["variant_id"] == without[0]) & (tables.gaps["metric"] == metric)]
        reason = f"{tables.called(without[0])} has no score: {next(iter(gaps['reason']), 'none was computed')}"
    if reason or floor is None or ceiling is None:
        return Reach(variant, metric, floor, ceiling, None, Interval(None, None, None, 0, reason))
    both = wide[[variant, floor, ceiling]].dropna()
    values, floors, ceilings = (both.iloc[:, place] for place in range(3))
    clusters = cluster_labels(both.index, tables.clusters) if tables.clusters is not None else None
    found = gain_share([*values], [*floors], [*ceilings], sign=tables.sign(metric), clusters=clusters)
    means = (exact_mean(floors), exact_mean(values), exact_mean(ceilings)) if len(both) else None
    return Reach(variant, metric, floor, ceiling, means, found)


def without_known_questions(read: Read, enough: float) -> Read:
    """Return a run without the questions that a closed book answers with a score of `enough` or better.

    The score is of the first metric of the run that reads answers, and of the variant that reads nothing; the better
    one, where several do. Which questions are left out depends on no variant that retrieves.

    Raises:
        ConfigError: if no variant closes the book, none of its scores is of an answer, `enough` cannot be reached, or
            no question would be left.
    """
    run, traces, rows = read
    infos = {metric: info for metric in run.metrics if (info := run.metric(metric)) is not None}
    metric = next((one for one, info in infos.items() if info.reads_answers and not info.is_cost), None)
    if metric is None:
        raise ConfigError(
            "Which questions are answered without any context is not known: no metric of this run reads answers; "
            "name one that does, as ragas.semantic_similarity."
        )
    scale = infos[metric].scale
    low, high = scale.low, scale.high
    if (low is not None and enough < low) or (high is not None and enough > high):
        allowed = f"{'any' if low is None else f'{low:g}'} to {'any' if high is None else f'{high:g}'}"
        raise ConfigError(f"{metric} is never {enough:g}; give a score from {allowed}.")
    configs = {plan.variant_id: run.config(plan.variant_id) for plan in run.variants}
    arms = [variant for variant, config in configs.items() if config and config.answer.context == FLOOR]
    if not arms:
        raise ConfigError(
            "Which questions are answered without any context is not known: no variant of this run closes the book; "
            "add one with answer.context=none to the experiment."
        )
    scores = per_question(rows[rows["variant_id"].isin(arms)], [metric])
    known = set(scores.loc[scale.sign * (scores["mean"] - enough) >= 0, "question_id"])
    if known >= set(run.questions):
        raise ConfigError(
            f"All {len(run.questions)} questions are answered without any context by {metric} = {enough:g}, so none is "
            "left to compare on; give a stricter score."
        )
    if not known:
        return read
    better = "at least" if scale.sign > 0 else "at most"
    reason = f"which a closed book answers ({metric} {better} {plain(enough)})"
    asked = tuple(name for name in run.questions if name not in known)
    kept = replace(
        run,
        questions=asked,
        answered=tuple(name for name in run.answered if name not in known),
        left_out={**run.left_out, reason: len(run.questions) - len(asked)},
    )
    traces = {
        variant: [trace for trace in some if trace.question.question_id not in known]
        for variant, some in traces.items()
    }
    return kept, traces, rows[~rows["question_id"].isin(known)].reset_index(drop=True)


Cause = Literal["missing", "crowded out", "ignored"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
_REACHED = {"used", "unused", "not_answered"}  # states of evidence that the reader had


@dataclass(frozen=True)
class WhyFailed:
    """The causes of wrong answers by variant and question, in the order of the tables; empty without a bound.

    metric: the first that reads answers on a scale with two ends; an answer is wrong in its worse half.
    middle: of that scale.
    """

    metric: str = ""
    middle: float = 0.0
    causes: Mapping[tuple[str, str], Cause] = field(default_factory=dict, repr=False)


def why_failed(tables: RunTables, evidence: Waterfall) -> WhyFailed:
    """Return the cause of each wrong answer to a question with labelled evidence, where a bound tells it."""
    scales = {metric: tables.scales.get(metric) for metric in answer_metrics(tables)}
    ends = {m: (s.low, s.high) for m, s in scales.items() if s and s.low is not None and s.high is not None}
    arms = bound_arms(tables)
    if not ends or CEILING not in arms.values():
        return WhyFailed()
    metric, (low, high) = next(iter(ends.items()))
    middle, sign = (low + high) / 2, tables.sign(metric)
    cells = per_question(tables.scores, [metric]).dropna(subset=["mean"])
    columns = (cells[name].tolist() for name in ("variant_id", "question_id", "mean"))
    right = {(one, question): sign * (mean - middle) > 0 for one, question, mean in zip(*columns, strict=True)}
    causes: dict[tuple[str, str], Cause] = {}
    for variant in tables.codes:
        alone, both = (bound_of(tables, variant, kind) for kind in (CEILING, BOTH))
        if alone is None or variant in arms:
            continue
        for name, question in tables.asked.items():
            known = right.get((alone, name))
            if right.get((variant, name), True) or known is None or not question.evidence:
                continue
            on_top = None if both is None else right.get((both, name))
            if on_top is None:
                on_top = not evidence.by_question.get((name, variant), frozenset()) <= _REACHED
            causes[variant, name] = "ignored" if not known else "missing" if on_top else "crowded out"
    return WhyFailed(metric, middle, causes)
