"""A run as tables, in the order of its plan, and what stands in them.

A failed variant has rows in no table of scores; it stands in `run.variants` and `failed`. Missing is not zero: every
mean stands beside how many questions were scored of those asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from rag_lab._kit.wording import letters
from rag_lab.config import PipelineConfig
from rag_lab.data.labels import distinct
from rag_lab.evaluation.retrieval import Counted, counted_ranks, is_quote
from rag_lab.records import Question, Trace
from rag_lab.runs.run_folder import RunFolder, VariantPlan
from rag_lab.statistics.families import Hypothesis, Options, Pairs
from rag_lab.statistics.noise_components import NoiseComponents
from rag_lab.statistics.randomization import Correction
from rag_lab.statistics.summaries import SHARE, Scale
from rag_lab.statistics.verdict import Answer


@dataclass(frozen=True)
class RunTables:
    """A run as tables, each in the order of the plan.

    summary: variant_id, metric, asked, scored, failed, not_applicable, mean, low, high, worst, best, reason.
    differences: see `families.differences_table`; for the quality metrics the pairs that the run declared, and each
        variant against the baseline, or every pair where `pairs` is `all`.
    answers: to every hypothesis that is shown anywhere, tested together: one comparison has one answer.
    questions: question_id, query_class, question, one column a variant (main metric, mean over repeats), spread.
    stages, stage_problems: see `tables.costs`.
    gaps: variant_id, metric, status, reason, count of the scores that are not there.
    latency: variant_id, n, median_s, search_s, answer_s; see `tables.costs`.
    noise: for each quality metric how its variance splits; empty where no question was repeated.
    scales: range and better direction of the metrics that the registry knows; more is better in any other.
    clusters: question_id to cluster, None where questions are independent; see `data.clusters`.

    `quality_metrics` are compared, `cost_metrics` stand beside them; both in the order of the plan.
    """

    run: RunFolder
    manifest: Mapping[str, Any]
    quality_metrics: tuple[str, ...]
    cost_metrics: tuple[str, ...]
    correction: Correction
    pairs: Pairs
    traces: Mapping[str, list[Trace]] = field(repr=False)
    scores: pd.DataFrame = field(repr=False)
    summary: pd.DataFrame = field(repr=False)
    differences: pd.DataFrame = field(repr=False)
    answers: Mapping[Hypothesis, Answer] = field(repr=False)
    questions: pd.DataFrame = field(repr=False)
    stages: pd.DataFrame = field(repr=False)
    stage_problems: pd.DataFrame = field(repr=False)
    gaps: pd.DataFrame = field(repr=False)
    latency: pd.DataFrame = field(repr=False)
    noise: Mapping[str, NoiseComponents] = field(repr=False)
    scales: Mapping[str, Scale] = field(repr=False)
    clusters: Mapping[str, str] | None = field(repr=False)

    @property
    def main_metric(self) -> str | None:
        """The metric that decides: the first quality metric of the plan."""
        return next(iter(self.quality_metrics), None)

    @property
    def options(self) -> Options:
        """How the hypotheses of the run are tested."""
        return Options(self.correction, self.run.strict, self.clusters, self.noise, self.scales)

    @property
    def quality_scores(self) -> pd.DataFrame:
        """The rows of `scores` of the quality metrics."""
        return self.scores[self.scores["metric"].isin(self.quality_metrics)]

    @cached_property
    def asked(self) -> dict[str, Question]:
        """Every question that any variant was asked, in order."""
        return {trace.question.question_id: trace.question for one in self.traces.values() for trace in one}

    @cached_property
    def pipelines(self) -> dict[str, PipelineConfig]:
        """The pipeline of each variant whose configuration was written."""
        found = {plan.variant_id: self.run.config(plan.variant_id) for plan in self.variants}
        return {variant: config for variant, config in found.items() if config is not None}

    @cached_property
    def counted(self) -> dict[str, dict[tuple[str, int], Counted]]:
        """The rankings of each variant in files and pages, by question and repeat, where labels name no words."""
        return {
            variant: {
                (trace.question.question_id, trace.repeat): counted_ranks(trace.ranked, evidence)
                for trace in traces
                if (evidence := distinct(trace.question.evidence)) and not any(map(is_quote, evidence))
            }
            for variant, traces in self.traces.items()
        }

    @cached_property
    def failed(self) -> dict[str, str]:
        """Variants that failed or were stopped by a limit, with the reason."""
        states = self.manifest.get("variants", {})
        return {
            plan.variant_id: str(states[plan.variant_id].get("reason") or "no reason was recorded")
            for plan in self.run.variants
            if self.state(plan.variant_id) in ("failed", "stopped")
        }

    @cached_property
    def variants(self) -> list[VariantPlan]:
        """The planned variants, the baseline first."""
        return sorted(self.run.variants, key=lambda plan: plan.variant_id != self.run.baseline)

    @cached_property
    def codes(self) -> dict[str, str]:
        """The letter that stands for each variant in figures and narrow tables; the baseline is A."""
        return {plan.variant_id: letters(index) for index, plan in enumerate(self.variants)}

    @cached_property
    def baseline_values(self) -> dict[str, Any]:
        """The baseline's settings as dotted keys, from its config.yaml; none where that was not written."""
        config = self.pipelines.get(self.run.baseline)
        return config.flat() if config is not None else {}

    @property
    def changed_keys(self) -> list[str]:
        """The dotted keys in which any variant differs from the baseline, in order of first appearance."""
        return list(dict.fromkeys(key for plan in self.variants for key in plan.changes))

    def label(self, variant_id: str) -> str:
        """Return the label of a variant."""
        return next(plan.label for plan in self.run.variants if plan.variant_id == variant_id)

    def state(self, variant_id: str) -> str:
        """Return how a variant ended: `ok`, `failed`, `stopped` (by a limit), or `not run`."""
        return str(self.manifest.get("variants", {}).get(variant_id, {}).get("status", "not run"))

    def name(self, variant_id: str) -> str:
        """Return letter and label of a variant."""
        return f"{self.codes[variant_id]} {self.label(variant_id)}"

    def called(self, variant_id: str) -> str:
        """Return letter and label of a variant for a sentence: `B (rerank.name=none)`."""
        return f"{self.codes[variant_id]} ({self.label(variant_id)})"

    def cell(self, variant_id: str, metric: str) -> dict[str, Any] | None:
        """Return the row of `summary` for one variant and metric, or None where there is none."""
        return self._rows.get((variant_id, metric))

    def difference(self, variant_id: str, metric: str) -> dict[str, Any] | None:
        """Return the row of `differences` for one variant and metric against the baseline, or None without one."""
        return self.pair(variant_id, self.run.baseline, metric)

    def pair(self, variant_id: str, against: str, metric: str) -> dict[str, Any] | None:
        """Return the row of `differences` for one pair and metric, or None without one."""
        return self._rows.get((variant_id, against, metric))

    @cached_property
    def _rows(self) -> dict[tuple[str, ...], dict[str, Any]]:
        """The rows of `summary` by variant and metric, those of `differences` by pair and metric; of two the first."""
        keys = ((self.summary, ("variant_id", "metric")), (self.differences, ("variant_id", "against", "metric")))
        return {
            tuple(row[name] for name in names): {str(key): value for key, value in row.items()}
            for table, names in keys
            for row in reversed(table.to_dict("records"))
        }

    def directed(self, metric: str) -> str:
        """Return the name of a metric, and that lower is better where it is."""
        return self.scales.get(metric, SHARE).named(metric)

    def sign(self, metric: str) -> int:
        """Return 1, or -1 for a metric of which less is better."""
        return self.scales.get(metric, SHARE).sign

    def reliable(self, variant_id: str, metric: str) -> int:
        """Return 1 or -1 where a variant is reliably better or worse than the baseline, else 0."""
        row = self.difference(variant_id, metric)
        return {"better": 1, "worse": -1}.get(str(row["verdict"]), 0) if row else 0
