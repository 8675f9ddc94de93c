"""What limits scores: variants that cannot be compared in a metric, text that models did not read, and who judged."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rag_lab._kit.wording import counted, signed
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.evaluation import cutoff_caveats, judge_check, registry
from rag_lab.evaluation.metric import model_name
from rag_lab.models.truncation import NOTICED, percent
from rag_lab.runs.omissions import SEARCHES, TRUNCATION, TruncationRecord
from rag_lab.stages.steps import stage_name


@dataclass(frozen=True, slots=True)
class StageTruncation:
    """Tokens that models did not read for a stage or a metric: of `n` of the `runs` questions or scores."""

    tokens: int
    n: int
    runs: int


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
            tables.run.recorded(plan.variant_id, *TRUNCATION),
            _truncation_by([one.stage for one in records], [one.truncated_tokens for one in records]),
            _truncation_by(scores["metric"].tolist(), scores["truncated_tokens"].tolist()),
        )
    return found


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
    """The metrics that a judge scored, its trial in a sentence, and whether it passed (None without a trial)."""

    metrics: tuple[str, ...]
    sentence: str
    passes: bool | None


def known_judge(manifest: Mapping[str, Any], judge: str) -> Mapping[str, Any] | str:
    """Return the identity of a judge that scores name, where the manifest has it; else its name."""
    identity = manifest.get("judge")
    return identity if isinstance(identity, dict) and model_name(identity) == judge else judge


def judge_notes(tables: RunTables) -> tuple[JudgeNote, ...]:
    """Return a note for each judge that scored a metric of the run."""
    infos = {metric: tables.run.metric(metric) for metric in tables.quality_metrics}
    judged = [metric for metric, info in infos.items() if info is not None and "judge" in info.needs]
    rows = tables.scores[tables.scores["metric"].isin(judged)].fillna({"judge": ""})
    language = str(tables.manifest.get("judge_language") or "")
    writers = [config.models.generation for config in tables.pipelines.values() if config.answer.asks_model]
    folder = tables.run.path if (tables.run.path / judge_check.FOLDER).is_dir() else None  # as in a bundle
    notes = []
    for judge, part in rows[rows["judge"] != ""].groupby("judge", sort=False):
        known = known_judge(tables.manifest, str(judge))
        check, banner = (
            judge_check.load_check(known, folder, language),
            judge_check.judge_banner(known, folder, language),
        )
        metrics = tuple(metric for metric in judged if metric in set(part["metric"]))
        sentence = f"Judged by {judge}: {', '.join(metrics)}. {banner}"
        is_main = tables.main_metric in metrics
        warnings = judge_check.judge_warnings(str(judge), writers, tables.run.design if is_main else "")
        sentence = " ".join([sentence, *warnings])
        notes.append(JudgeNote(metrics, sentence, None if check is None else check.passes))
    return tuple(notes)


def replications(tables: RunTables) -> list[str]:
    """Return a sentence for each reliable difference by a judge that another judge scored too: whether both find it."""
    found = []
    for metric in tables.quality_metrics:
        base, by, judge = metric.partition(registry.BY)
        rows = tables.differences[tables.differences["metric"] == base].to_dict("records") if by else []
        for row in rows:
            other = tables.pair(row["variant_id"], row["against"], metric)
            if other is not None and row["verdict"] in ("better", "worse"):
                pair = f"{tables.called(row['variant_id'])} is {row['verdict']} than {tables.called(row['against'])}"
                is_found = "replicated by" if other["verdict"] == row["verdict"] else "not replicated by"
                found.append(f"{pair} in {base}: {is_found} {judge} ({signed(other['difference'])}).")
    return found


def withheld(tables: RunTables, metric: str, variants: Iterable[str]) -> str:
    """Return why variants of a run are not compared in a metric, by their settings and by what they ranked; or "".

    Of labels that name files, or pages, a ranking of smaller texts holds fewer than one of larger texts that is as
    long. Evidence that stands where only the latter has ranks is no merit of its order.
    """
    variants = list(variants)
    if reason := cutoff_caveats.not_compared(metric, tables.pipelines, variants):
        return reason
    units = {cutoff_caveats.unit_of(tables.pipelines[variant]) for variant in variants if variant in tables.pipelines}
    if len(units) < 2 or not metric.startswith("retrieval.") or registry.text_budget(metric) is not None:
        return ""
    rankings = [tables.counted[variant] for variant in variants if variant in tables.counted]
    keys = set.intersection(*(set(one) for one in rankings)) if rankings else set()
    beyond = []
    for shown in ([one[key] for one in rankings] for key in keys):
        end = min(one.n for one in shown)
        first = min((r for one in shown for r in one.ranks if r is not None and r > end), default=math.inf)
        if first <= (registry.cutoff(metric) or math.inf):
            beyond.append(first)  # the first rank of evidence behind the end of the shortest ranking
    if not beyond:
        return ""
    k = min(beyond) - 1
    up_to = f"a cut-off of {k:g} or " if k else ""
    return (
        f"{cutoff_caveats.NOT_COMPARED}labels name files or pages, of which one ranking holds more than the other, and "
        f"{metric} finds evidence of {counted(len(beyond), 'question')} behind the end of the shorter; {up_to}a larger "
        "rerank.final_k compares them"
    )


def shared_fields(tables: RunTables, variant: str, against: str, metric: str) -> str:
    """Return the fields that a metric reads where two variants have them all alike, else "".

    A metric that reads nothing that a change touches is blind to it; that all scores are equal is then no finding.
    """
    info = tables.run.metric(metric)
    ours, theirs = tables.traces.get(variant, []), tables.traces.get(against, [])
    if info is None or info.is_cost or not info.reads or len(ours) != len(theirs):
        return ""
    names = sorted(info.reads)
    is_same = all(getattr(a, name) == getattr(b, name) for a, b in zip(ours, theirs, strict=True) for name in names)
    return " and ".join({"ranked": "ranking"}.get(name, name) for name in names) if is_same else ""
