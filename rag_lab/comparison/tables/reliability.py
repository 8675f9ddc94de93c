"""What limits scores: text that models did not read, and who judged."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.evaluation.judge_check import judge_banner, load_check
from rag_lab.evaluation.metric import model_name
from rag_lab.models.truncation import NOTICED, percent
from rag_lab.runs.omissions import SEARCHES, TruncationRecord
from rag_lab.stages.steps import stage_name


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
    found = {}
    for plan in tables.variants:
        records = [one for trace in tables.traces.get(plan.variant_id, []) for one in trace.stages]
        records = [one for one in records if one.stage not in SEARCHES]
        scores = tables.scores[tables.scores["variant_id"] == plan.variant_id]
        found[plan.variant_id] = VariantTruncation(
            tables.run.truncation(plan.variant_id),
            _truncation_by([one.stage for one in records], [one.truncated_tokens for one in records]),
            _truncation_by(scores["metric"].tolist(), scores["truncated_tokens"].tolist()),
        )
    return found


def is_unlike(one: float | None, other: float | None) -> bool:
    """Tell whether two shares of text that was not read make a difference; without an embedding model none does."""
    return one is not None and other is not None and abs(one - other) >= NOTICED


def _truncation_by(names: Sequence[str], tokens: Sequence[float | None]) -> dict[str, StageTruncation]:
    """Return what was not read by name, in order of first appearance; what is hardly noticed is left out."""
    lost: dict[str, list[int]] = {}
    for name, n_tokens in zip(names, tokens, strict=True):
        if n_tokens and n_tokens > 0:  # no number is not zero
            lost.setdefault(name, []).append(int(n_tokens))
    runs = Counter(names)
    found = {name: StageTruncation(sum(each), len(each), runs[name]) for name, each in lost.items()}
    return {name: one for name, one in found.items() if one.n >= NOTICED * one.runs}


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
    infos = {metric: tables.run.metric(metric) for metric in tables.quality_metrics}
    judged = [metric for metric, info in infos.items() if info is not None and "judge" in info.needs]
    rows = tables.scores[tables.scores["metric"].isin(judged)].fillna({"judge": ""})
    identity, language = tables.manifest.get("judge"), str(tables.manifest.get("judge_language") or "")
    notes = []
    for judge, part in rows[rows["judge"] != ""].groupby("judge", sort=False):
        known = identity if isinstance(identity, dict) and model_name(identity) == judge else str(judge)
        check, banner = load_check(known, language=language), judge_banner(known, language=language)
        metrics = tuple(metric for metric in judged if metric in set(part["metric"]))
        notes.append(JudgeNote(str(judge), metrics, banner, None if check is None else check.passes))
    return tuple(notes)
