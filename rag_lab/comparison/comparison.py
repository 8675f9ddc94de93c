"""A run folder read and compared: its tables, and the studies of them that reports, figures and notebooks show."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import get_args

import pandas as pd

from rag_lab._kit.wording import counted
from rag_lab.comparison import blind_trials, by_question
from rag_lab.comparison.tables import bounds, changes, costs, evidence, pareto, reliability, studies
from rag_lab.comparison.tables import effects as modules
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.config import PipelineConfig
from rag_lab.data.sampling import clusters_of
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.evaluation.cutoff_caveats import Shallow, ranks_seen, shallow, unequal_text
from rag_lab.records import Trace
from rag_lab.runs.human_input import with_margins
from rag_lab.runs.run_folder import RunFolder
from rag_lab.runs.run_manifest import read_race
from rag_lab.runs.variant_files import Questions
from rag_lab.statistics.effects import effects_table
from rag_lab.statistics.families import COMPARISON_COLUMNS, Pairs, answers, differences_table, pairs_among, score_pairs
from rag_lab.statistics.noise_components import noise
from rag_lab.statistics.randomization import Correction, check_correction
from rag_lab.statistics.summaries import RANKING_COLUMNS, UNKNOWN, ranking, scales_of, summary

_GAP = ["variant_id", "metric", "status", "reason"]


@dataclass(frozen=True)
class Comparison(RunTables):
    """The tables of a run, and what follows from them: each made on first use, as it is costly and not always seen."""

    # The effects that the design can show, and its HyDE studies.
    planned_effects = cached_property(modules.planned_effects)
    planned_studies = cached_property(studies.planned_studies)
    # The columns of `summary`, for every metric, and the class or the tag; a question counts in each of its tags.
    by_class = cached_property(partial(by_question.summary_of_groups, column="query_class"))
    by_tag = cached_property(partial(by_question.summary_of_groups, column="tag"))
    # The HyDE studies in the main metric: does routing by class pay, and a rule learned from it.
    routing = cached_property(lambda self: studies.routing_studies(self, self.planned_studies))
    # What a question takes under each variant that has traces.
    prices = cached_property(costs.prices)
    # What each variant changes against the baseline in rankings, answers and cost; labels are not needed.
    changes = cached_property(changes.what_changed)
    # Where each labelled piece of evidence was lost under each variant, or that its answer uses it.
    evidence = cached_property(evidence.waterfall)
    # Why each wrong answer is wrong, where a variant reads the labelled evidence.
    why_failed = cached_property(lambda self: bounds.why_failed(self, self.evidence))
    # What each variant reaches of the gain from a closed book to the labelled evidence; empty without bounds.
    gain = cached_property(bounds.reachable_gain)
    # What models were sent and did not read, of each variant.
    truncation = cached_property(reliability.truncations)
    # What a person preferred, blind, for each pair of variants that was judged with `rag_lab.prefer`.
    preferences = cached_property(blind_trials.preferred)
    # The pair of variants whose answers people rated; None where nobody rated any.
    rated = cached_property(blind_trials.labelled_answers)
    # Who judged which metrics, and what its trial says of it.
    judges = cached_property(reliability.judge_notes)
    # In a grid: the gains of single changes added up, and together; None where it has none.
    parts = cached_property(studies.sum_of_parts)
    # Which variants no other beats in the main metric and in what a question takes, and how certain that is.
    front = cached_property(lambda self: pareto.pareto_fronts(self, self.prices))
    # How pipelines fare as distractors join the corpus; None where the run has one size alone.
    growth = cached_property(studies.growth_found)
    # The race whose proof the run is; None where it is none.
    race = cached_property(lambda self: read_race(self.run.path))
    # What may be left out, by the margins of the run.
    not_worse = cached_property(lambda self: modules.not_worse_found(self, self.planned_effects, self.prices))
    # Which variants are not worse than the best by more than the margin of the main metric.
    not_worse_than_best = cached_property(modules.best_found)

    @cached_property
    def ranking(self) -> pd.DataFrame:
        """The order of the variants in the main metric, a failed question counted as its worst value."""
        metric = self.main_metric
        if metric is None or self.scores.empty:
            return pd.DataFrame(columns=list(RANKING_COLUMNS))
        return ranking(self.scores, metric, self.scales.get(metric, UNKNOWN))

    @cached_property
    def effects(self) -> modules.EffectsFound:
        """What each module adds, alone and beside the others: table, sentences, and what the design cannot show."""
        planned, by_margin = self.planned_effects, {}
        for contrast, metric in ((one.contrast, one.metric) for one in planned.planned):
            level = metric, contrast.factor, contrast.level
            found = [self.not_worse.get(key) for key in (level, (metric, *contrast.weights))]
            bound = next((one for one in found if one and one.is_found), None)
            if bound and contrast.kind in ("main", "toggle"):
                side = "better" if bound.is_addition else "worse"
                by_margin[level] = f"is not {side} by more than {bound.margin:g}"
        if not planned.planned:
            return planned
        return replace(planned, table=effects_table(planned.planned, self.answers), by_margin=by_margin)

    @cached_property
    def questions_for_margin(self) -> Mapping[modules.Key, int | None]:
        """How many questions, or clusters, would show what the margin of the main metric does not show yet."""
        pairs, effects = self.differences, self.effects.table
        mains = effects[effects["kind"] == "main"]
        told = [
            *zip(pairs["metric"], pairs["variant_id"], pairs["against"], pairs["verdict"], strict=True),
            *zip(mains["metric"], mains["factor"], mains["level"], mains["verdict"], strict=True),
        ]
        findings = {(metric, one, other) for metric, one, other, said in told if said in ("better", "worse")}
        return modules.questions_for_margin(self, self.not_worse, findings)

    @property
    def is_unlabelled(self) -> bool:
        """Whether nothing is known of any answer, so that no variant can be called better by labels."""
        return bool(self.asked) and not any(question.is_labelled for question in self.asked.values())

    @property
    def is_measured(self) -> bool:
        """Whether the main metric has a score of any variant, as one of a judge has without labels."""
        cells = (self.cell(plan.variant_id, self.main_metric or "") for plan in self.variants)
        return any(cell and cell["scored"] for cell in cells)

    @cached_property
    def shallow(self) -> Mapping[str, Shallow]:
        """The metrics with a cut-off that the rankings of some variants cannot fill, variants by `name`."""
        return shallow(self.quality_metrics, self.configs)

    @cached_property
    def unequal_text(self) -> list[str]:
        """What is to be said where variants read different amounts of text at the same rank, a sentence each."""
        traces = {self.name(variant): traces for variant, traces in self.traces.items()}
        return unequal_text(self.quality_metrics, self.configs, traces, self.asked.values())

    @cached_property
    def configs(self) -> dict[str, PipelineConfig]:
        """The pipelines by `name`, without those of which nothing was written."""
        return {self.name(variant): config for variant, config in self.pipelines.items()}

    def trace(self, variant_id: str, question_id: str) -> Trace:
        """Return what a variant did with a question, the first time that it was asked.

        Raises:
            ConfigError: if the run has no such variant, or the variant was not asked the question.
        """
        if variant_id not in self.traces:
            raise ConfigError(unknown_name("variant with traces", variant_id, self.traces))
        asked = {trace.question.question_id: trace for trace in reversed(self.traces[variant_id])}
        if question_id not in asked:
            raise ConfigError(unknown_name("question of the run", question_id, [*reversed(asked)]))
        return asked[question_id]

    # What a variant won and lost against the baseline on each question.
    paired = by_question.paired_questions

    def ranks(self, variant_id: str, metric: str) -> int | None:
        """Return how many ranks of a variant a metric sees where these are fewer than its cut-off, else None."""
        config = self.configs.get(self.name(variant_id)) if metric in self.shallow else None
        seen = ranks_seen(metric, config) if config is not None else None
        return seen if seen is not None and seen < self.shallow[metric].cutoff else None

    def measured(self, variant_id: str, metric: str) -> str:
        """Return what was measured of a variant: the metric's name, its direction, and over how few ranks."""
        ranks = self.ranks(variant_id, metric)
        return self.directed(metric) + ("" if ranks is None else f" (over {counted(ranks, 'rank')})")

    def column(self, metric: str) -> str:
        """Return what stands above the column of a metric: its name, its direction, and what limits it."""
        mark = f" ({self.shallow[metric].mark})" if metric in self.shallow else ""
        return self.directed(metric) + mark


def read_comparison(
    run_dir: Path | str,
    *,
    correction: Correction = "max_t",
    pairs: Pairs = "baseline",
    margins: Mapping[str, float] | None = None,
    without_known: float | None = None,
    read: Mapping[str, list[Trace]] | None = None,
) -> Comparison:
    """Read the run in `run_dir` and compare its variants, as `rag_lab.compare` does; `margins` are given post hoc.

    Traces of variants that were `read` are not read again.

    Raises:
        RagLabError: if the folder is no run, has no scores yet, or an option is unknown.
    """
    check_correction(correction)
    if pairs not in get_args(Pairs):
        raise ConfigError(unknown_name("choice of pairs", pairs, get_args(Pairs)))
    run = with_margins(RunFolder.open(run_dir), margins or {})
    known: Questions = {}  # what variants know of a question alike is stored once
    names, read = [plan.variant_id for plan in run.variants], read or {}
    traces: Mapping[str, list[Trace]] = {v: read[v] if v in read else run.traces(v, known) for v in names}
    scores = run.scores()
    if without_known is not None:
        run, traces, scores = bounds.without_known_questions((run, traces, scores), without_known)
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
    variants = [plan.variant_id for plan in run.variants]
    questions = by_question.scores_by_question(scores, next(iter(quality_metrics), ""), asked, variants)
    values = questions[variants]
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
            questions=questions.assign(spread=values.max(axis=1) - values.min(axis=1)),
            stages=costs.stage_table(traces),
            stage_problems=costs.stage_problems(traces),
            gaps=gaps.sort_values("count", ascending=False, kind="stable", ignore_index=True),
            latency=costs.latencies(traces),
            noise={str(metric): noise(quality, metric) for metric in repeated},
            scales=scales,
            clusters=clusters,
        )
    )


def with_answers(tables: Comparison) -> Comparison:
    """Return the comparison with its differences: all that will be shown of it is tested at once."""
    run, scores, effects = tables.run, tables.quality_scores, tables.planned_effects
    scored = set(scores["variant_id"].unique())
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
        pairs.append(
            replace(one, is_primary=is_primary, withheld=reliability.withheld(tables, one.metric, variants_of))
        )
    hypotheses = [
        *(pair.hypothesis for pair in pairs if not pair.withheld),
        *(effect.hypothesis for effect in effects.planned),
        *(pair.hypothesis for study in tables.planned_studies for pair in study.pairs),
    ]
    found = answers(scores, hypotheses, tables.options) if hypotheses else {}
    done = replace(tables, answers=found, differences=differences_table(pairs, found))
    # What is planned, and of which pipelines, rests on no answer, so that it is not found again.
    vars(done).update(planned_effects=effects, planned_studies=tables.planned_studies, pipelines=tables.pipelines)
    return done
