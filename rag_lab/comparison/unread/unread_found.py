"""What the models of each variant were sent and did not read: of the corpus, and of the questions by stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rag_lab.models.limits.unread import NOTICED, percent
from rag_lab.records import StageRecord, Trace
from rag_lab.runs.truncation_record import SEARCHES, TruncationRecord, truncation_record
from rag_lab.stages.steps import stage_name

if TYPE_CHECKING:
    import pandas as pd

    from rag_lab.comparison.run_tables import RunTables


@dataclass(frozen=True, slots=True)
class StageUnread:
    """Tokens that models did not read for a stage or a metric: of `n` of the `runs` questions or scores."""

    tokens: int
    n: int
    runs: int

    def told(self, what: str) -> str:
        """Say so; `what` ran, as questions."""
        return f"{self.tokens / self.n:,.0f} tokens on average, of {self.n:,} of {self.runs:,} {what}"


@dataclass(frozen=True, slots=True)
class VariantUnread:
    """What was not read under one variant.

    corpus: of the chunks; None where no search asked an embedding model, or nobody knows how much it reads.
    stages: of what stages sent, by their names.
    metrics: of what judges and embedding models of metrics were sent, by the metric; of scores.
    """

    corpus: TruncationRecord | None = None
    stages: Mapping[str, StageUnread] = field(default_factory=dict)
    metrics: Mapping[str, StageUnread] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """The share of the text that no search finds by meaning; None where no embedding model was asked."""
        return self.corpus.chunks.share_unread if self.corpus else None

    @property
    def mark(self) -> str:
        """What stands beside the variant's name; '' where nearly all was read."""
        told = []
        if self.corpus and self.corpus.chunks.share_unread >= NOTICED:
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


def unread_found(tables: RunTables) -> dict[str, VariantUnread]:
    """Return what was not read under each variant, by its id."""
    return {
        plan.variant_id: VariantUnread(
            truncation_record(tables.run, plan.variant_id),
            _by_stage(tables.traces.get(plan.variant_id, [])),
            _by_metric(tables.scores, plan.variant_id),
        )
        for plan in tables.variants
    }


def is_unlike(one: float | None, other: float | None) -> bool:
    """Tell whether two shares of text that was not read make a difference; without an embedding model none does."""
    return one is not None and other is not None and abs(one - other) >= NOTICED


def _by_stage(traces: list[Trace]) -> dict[str, StageUnread]:
    records = [record for trace in traces for record in trace.stages if record.stage not in SEARCHES]
    cut = dict.fromkeys(record.stage for record in records if record.truncated_tokens)
    found = {stage: _of_stage([one for one in records if one.stage == stage]) for stage in cut}
    return {stage: one for stage, one in found.items() if one.n >= NOTICED * one.runs}


def _by_metric(scores: pd.DataFrame, variant: str) -> dict[str, StageUnread]:
    ours = scores[scores["variant_id"] == variant]
    cut = ours[ours["truncated_tokens"] > 0]
    found = {
        str(metric): StageUnread(int(rows["truncated_tokens"].sum()), len(rows), int((ours["metric"] == metric).sum()))
        for metric, rows in cut.groupby("metric", sort=False)
    }
    return {metric: one for metric, one in found.items() if one.n >= NOTICED * one.runs}


def _of_stage(records: list[StageRecord]) -> StageUnread:
    tokens = [record.truncated_tokens for record in records if record.truncated_tokens]
    return StageUnread(sum(tokens), len(tokens), len(records))
