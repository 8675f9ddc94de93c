"""`compare` reads a run folder into tables, from which HTML, Markdown, figures and notebooks are made.

A failed variant has rows in no table of scores; it stands in `run.variants` and `failed`. Missing is not zero: every
mean stands beside how many questions were scored of those asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from rag_lab.experiment.run_folder import RunFolder
from rag_lab.records import QUERY_CLASSES, Question, Trace
from rag_lab.report.numbers import is_cost
from rag_lab.report.stages import latencies, stage_problems, stage_table

if TYPE_CHECKING:
    from rag_lab.experiment.run_folder import VariantPlan


@dataclass(frozen=True)
class Comparison:
    """A run as tables, each in the order of the plan.

    summary: variant_id, metric, asked, scored, failed, not_applicable, mean, low, high, worst, best, reason.
    differences: variant_id, metric, n, difference, low, high, p_value, p_corrected, wins, ties, losses, verdict, for
        the quality metrics: each variant minus the baseline on the questions that both have.
    by_class: the columns of summary and query_class (the dataset's label), for the quality metrics.
    questions: question_id, query_class, question, one column a variant (main metric, mean over repeats), spread.
    stages, stage_problems: see `report.stages`.
    score_problems: variant_id, metric, reason, count of the failed scores.
    latency: variant_id, n, median_s.

    Of the metrics, more is better in `quality_metrics` and less in `cost_metrics`; both in the order of the plan.
    """

    run: RunFolder
    manifest: Mapping[str, Any]
    quality_metrics: tuple[str, ...]
    cost_metrics: tuple[str, ...]
    traces: Mapping[str, list[Trace]] = field(repr=False)
    scores: pd.DataFrame = field(repr=False)
    summary: pd.DataFrame = field(repr=False)
    differences: pd.DataFrame = field(repr=False)
    by_class: pd.DataFrame = field(repr=False)
    questions: pd.DataFrame = field(repr=False)
    stages: pd.DataFrame = field(repr=False)
    stage_problems: pd.DataFrame = field(repr=False)
    score_problems: pd.DataFrame = field(repr=False)
    latency: pd.DataFrame = field(repr=False)

    @property
    def main_metric(self) -> str | None:
        """The metric that decides: the first quality metric of the plan."""
        return next(iter(self.quality_metrics), None)

    @property
    def failed(self) -> dict[str, str]:
        """Variants that failed or were stopped by a limit, with the reason."""
        states = self.manifest.get("variants", {})
        return {
            plan.variant_id: str(states[plan.variant_id].get("reason") or "no reason was recorded")
            for plan in self.run.variants
            if states.get(plan.variant_id, {}).get("status") in ("failed", "stopped")
        }

    @property
    def variants(self) -> list[VariantPlan]:
        """The planned variants, the baseline first."""
        return sorted(self.run.variants, key=lambda plan: plan.variant_id != self.run.baseline)

    @property
    def codes(self) -> dict[str, str]:
        """The letter that stands for each variant in figures and narrow tables; the baseline is A."""
        return {plan.variant_id: _letters(index) for index, plan in enumerate(self.variants)}

    def label(self, variant_id: str) -> str:
        """Return the label of a variant."""
        return next(plan.label for plan in self.run.variants if plan.variant_id == variant_id)

    def cell(self, variant_id: str, metric: str) -> dict[str, Any] | None:
        """Return the row of `summary` for one variant and metric, or None where there is none."""
        return _row(self.summary, variant_id, metric)

    def difference(self, variant_id: str, metric: str) -> dict[str, Any] | None:
        """Return the row of `differences` for one variant and metric, or None where there is none."""
        return _row(self.differences, variant_id, metric)

    def reliable(self, variant_id: str, metric: str) -> int:
        """Return 1 or -1 where a variant is reliably better or worse than the baseline, else 0."""
        row = self.difference(variant_id, metric)
        return {"better": 1, "worse": -1}.get(str(row["verdict"]), 0) if row else 0

    def to_markdown(self) -> str:
        """Return the short report for a pull request."""
        from rag_lab.report.markdown import to_markdown

        return to_markdown(self)

    def to_latex(self) -> str:
        """Return the tables of scores and differences for LaTeX, with booktabs' rules."""
        from rag_lab.report.comparison_tables import tables

        return "\n\n".join(table.to_latex() for table in tables(self) if table.rows) + "\n"

    def _repr_html_(self) -> str:
        from rag_lab.report.html import overview_html

        return overview_html(self)


def compare(run_dir: Path | str) -> Comparison:
    """Read the run in `run_dir` and compare its variants.

    Raises:
        RagLabError: if the folder is no run, or has no scores yet.
    """
    from rag_lab.statistics.complete_cases import COMPARISON_COLUMNS, comparisons, summary

    run = RunFolder.open(run_dir)
    traces = {plan.variant_id: run.traces(plan.variant_id) for plan in run.variants}
    scores = run.scores()
    metrics = list(dict.fromkeys([*run.metrics, *scores["metric"].unique()]))
    quality_metrics = tuple(metric for metric in metrics if not is_cost(metric))
    quality = scores[scores["metric"].isin(quality_metrics)]
    asked = _asked(traces)
    has_baseline = run.baseline in set(quality["variant_id"])
    return Comparison(
        run=run,
        manifest=run.manifest(),
        quality_metrics=quality_metrics,
        cost_metrics=tuple(metric for metric in metrics if is_cost(metric)),
        traces=traces,
        scores=scores,
        summary=summary(scores),
        differences=comparisons(quality, run.baseline)
        if has_baseline
        else pd.DataFrame(columns=list(COMPARISON_COLUMNS)),
        by_class=_by_class(quality, asked),
        questions=_questions(run, scores, next(iter(quality_metrics), ""), asked),
        stages=stage_table(traces),
        stage_problems=stage_problems(traces),
        score_problems=_score_problems(scores),
        latency=latencies(traces),
    )


def _row(table: pd.DataFrame, variant_id: str, metric: str) -> dict[str, Any] | None:
    rows = table[(table["variant_id"] == variant_id) & (table["metric"] == metric)]
    return None if rows.empty else {str(key): value for key, value in rows.iloc[0].items()}


def _letters(index: int) -> str:
    """Return A … Z, AA, AB, … for 0, 1, …"""
    head, tail = divmod(index, 26)
    return (_letters(head - 1) if head else "") + chr(ord("A") + tail)


def _asked(traces: Mapping[str, list[Trace]]) -> dict[str, Question]:
    """Return every question that any variant was asked, in order."""
    return {trace.question.question_id: trace.question for one in traces.values() for trace in one}


def _by_class(quality: pd.DataFrame, asked: Mapping[str, Question]) -> pd.DataFrame:
    from rag_lab.statistics.complete_cases import summary

    label = quality["question_id"].map({name: question.query_class for name, question in asked.items()})
    parts = [
        summary(quality[label == name]).assign(query_class=name) for name in QUERY_CLASSES if (label == name).any()
    ]
    return (
        pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["variant_id", "metric", "query_class"])
    )


def _questions(run: RunFolder, scores: pd.DataFrame, main: str, asked: Mapping[str, Question]) -> pd.DataFrame:
    values = scores[(scores["metric"] == main) & (scores["status"] == "scored")].astype({"value": float})
    wide = values.pivot_table(index="question_id", columns="variant_id", values="value", aggfunc="mean")
    wide = wide.reindex(index=list(asked), columns=[plan.variant_id for plan in run.variants])
    table = wide.assign(spread=wide.max(axis=1) - wide.min(axis=1)).reset_index(names="question_id")
    table.insert(1, "query_class", [question.query_class for question in asked.values()])
    table.insert(2, "question", [question.text for question in asked.values()])
    return table


def _score_problems(scores: pd.DataFrame) -> pd.DataFrame:
    failed = scores[scores["status"] == "failed"]
    counted = failed.groupby(["variant_id", "metric", "reason"], sort=False).size().reset_index(name="count")
    return counted.sort_values("count", ascending=False, kind="stable", ignore_index=True)
