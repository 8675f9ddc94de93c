"""Who judged which metrics, and whether that judge can be believed."""

from __future__ import annotations

from dataclasses import dataclass

from rag_lab.comparison.run_tables import RunTables
from rag_lab.evaluation.judge_check import judge_banner, load_check
from rag_lab.evaluation.metric import model_name


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
