"""What limits scores: text that models did not read, and who judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.evaluation.judge_check import judge_banner, load_check
from rag_lab.evaluation.metric import model_name
from rag_lab.models.truncation import NOTICED, percent
from rag_lab.records import StageRecord, Trace
from rag_lab.runs.omissions import SEARCHES, TruncationRecord
from rag_lab.stages.steps import stage_name

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class StageTruncation:
    """Tokens that models did not read for a stage or a metric: of `n` of the `runs` questions or scores."""

    tokens: int
    n: int
    runs: int

    def text(self, what: str) -> str:
        """Say so; `what` ran, as questions."""
        return f"{self.tokens / self.n:,.0f} tokens on average, of {self.n:,} of {self.runs:,} {what}"


@dataclass(frozen=True, slots=True)
class VariantTruncation:
    """What was not read under one variant.

    corpus: of the chunks; None where no search asked an embedding model, or nobody knows how much it reads.
    stages: of what stages sent, by their names.
    metrics: of what judges and embedding models of metrics were sent, by the metric; of scores.
    """

    corpus: TruncationRecord | None = None
    stages: Mapping[str, StageTruncation] = field(default_factory=dict)
    metrics: Mapping[str, StageTruncation] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """The share of the text that no search finds by meaning; None where no embedding model was asked."""
        return self.corpus.chunks.share_truncated if self.corpus else None

    @property
    def mark(self) -> str:
        """What stands beside the variant's name; '' where nearly all was read."""
        told = []
        if self.corpus and self.corpus.chunks.share_truncated >= NOTICED:
            chunks = self.corpus.chunks
            told.append(f"{percent(chunks.share_longer)} of chunks cut at {chunks.limit:,} tokens")
        if self.corpus and self.corpus.asked_cut:
            told.append(f"questions: not all read of {self.corpus.asked_cut:,} of {self.corpus.asked:,}")
        told += [
            f"{stage_name(stage).lower()}: not all read on {one.n:,} of {one.runs:,} questions"
            for stage, one in self.stages.items()
        ]
        return "; ".join(
            [*told, *(f"{m}: not all read for {n.n:,} of {n.runs:,} scores" for m, n in self.metrics.items())]
        )


def truncations(tables: RunTables) -> dict[str, VariantTruncation]:
    """Return what was not read under each variant, by its id."""
    return {
        plan.variant_id: VariantTruncation(
            tables.run.truncation(plan.variant_id),
            _by_stage(tables.traces.get(plan.variant_id, [])),
            _by_metric(tables.scores, plan.variant_id),
        )
        for plan in tables.variants
    }


def is_unlike(one: float | None, other: float | None) -> bool:
    """Tell whether two shares of text that was not read make a difference; without an embedding model none does."""
    return one is not None and other is not None and abs(one - other) >= NOTICED


def _by_stage(traces: list[Trace]) -> dict[str, StageTruncation]:
    records = [record for trace in traces for record in trace.stages if record.stage not in SEARCHES]
    cut = dict.fromkeys(record.stage for record in records if record.truncated_tokens)
    found = {stage: _of_stage([one for one in records if one.stage == stage]) for stage in cut}
    return {stage: one for stage, one in found.items() if one.n >= NOTICED * one.runs}


def _by_metric(scores: pd.DataFrame, variant: str) -> dict[str, StageTruncation]:
    ours = scores[scores["variant_id"] == variant]
    cut = ours[ours["truncated_tokens"] > 0]
    found = {
        str(metric): StageTruncation(
            int(rows["truncated_tokens"].sum()), len(rows), int((ours["metric"] == metric).sum())
        )
        for metric, rows in cut.groupby("metric", sort=False)
    }
    return {metric: one for metric, one in found.items() if one.n >= NOTICED * one.runs}


def _of_stage(records: list[StageRecord]) -> StageTruncation:
    tokens = [record.truncated_tokens for record in records if record.truncated_tokens]
    return StageTruncation(sum(tokens), len(tokens), len(records))


@dataclass(frozen=True, slots=True)
class JudgeNote:
    """A judge, the metrics that it scored, the banner of its trial, and whether it passed (None without a trial)."""

    judge: str
    metrics: tuple[str, ...]
    banner: str
    passes: bool | None

    @property
    def sentence(self) -> str:
        """The banner with what it is about."""
        return f"Judged by {self.judge}: {', '.join(self.metrics)}. {self.banner}"


def judge_notes(tables: RunTables) -> tuple[JudgeNote, ...]:
    """Return a note for each judge that scored a metric of the run."""
    judged = [metric for metric in tables.quality_metrics if _is_judged(tables, metric)]
    rows = tables.scores[tables.scores["metric"].isin(judged)].fillna({"judge": ""})
    return tuple(
        _note(tables, str(judge), tuple(metric for metric in judged if metric in set(part["metric"])))
        for judge, part in rows[rows["judge"] != ""].groupby("judge", sort=False)
    )


def _note(tables: RunTables, judge: str, metrics: tuple[str, ...]) -> JudgeNote:
    identity = tables.manifest.get("judge")
    known = identity if isinstance(identity, dict) and model_name(identity) == judge else judge
    language = str(tables.manifest.get("judge_language") or "")
    check = load_check(known, language=language)
    banner = judge_banner(known, language=language)
    return JudgeNote(judge, metrics, banner, None if check is None else check.passes)


def _is_judged(tables: RunTables, metric: str) -> bool:
    info = tables.run.metric(metric)
    return info is not None and "judge" in info.needs
