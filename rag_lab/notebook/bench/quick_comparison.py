"""Settings of the bench compared on a sample of questions, and how long that would take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_lab._kit.wording import counted
from rag_lab.config import PipelineConfig
from rag_lab.errors import ConfigError
from rag_lab.evaluation.registry import parse_name
from rag_lab.evaluation.registry import problems as metric_problems
from rag_lab.experiment.forecast.cost_estimate import ASSUMED_S
from rag_lab.experiment.run.compare_pipelines import compare
from rag_lab.pipeline import Pipeline
from rag_lab.records import StageRecord
from rag_lab.report.shown_comparison import ShownComparison

_ANSWERS = ("generate", "parse")
_SEARCH_S = 0.5  # the first search of a kernel waits for the embedding model, the others do not
Records = Callable[[PipelineConfig], Sequence[StageRecord]]  # of a question that a setting was run on, if any was


def seconds_a_question(settings: Sequence[PipelineConfig], records_of: Records, metrics: Sequence[str]) -> float:
    """Return about how many seconds a comparison takes for each question, work that settings share counted once.

    What was replayed has the seconds of the first time, to the last digit, so equal records are one computation. A
    setting that has not been run is taken to be as slow as a packaged model on two cores.
    """
    answers = not metrics or any(map(_reads_answers, metrics))
    known = {(record.stage, record.seconds) for setting in settings for record in records_of(setting)}
    new = [setting for setting in settings if not records_of(setting)]
    known = {(stage, min(seconds, _SEARCH_S) if stage.startswith("search_") else seconds) for stage, seconds in known}
    seconds = sum(seconds for stage, seconds in known if answers or stage not in _ANSWERS)
    return seconds + sum(_assumed_s(setting, answers) for setting in new)


def _reads_answers(metric: str) -> bool:
    try:
        return parse_name(metric).info.reads_answers
    except ConfigError:  # which is said where it is asked for
        return True


def _assumed_s(config: PipelineConfig, answers: bool) -> float:
    query, is_reranked = config.query, config.rerank.name in ("cross_encoder", "query_likelihood")
    calls = query.understands + (query.hyde != "none") * query.hyde_n + (query.phrasings > 0)
    calls += answers and config.answer.name == "llm"
    return calls * ASSUMED_S["call"] + is_reranked * config.rerank.input_limit * ASSUMED_S["pair"]


@dataclass(frozen=True)
class QuickComparison:
    """What `rag_lab.compare` found, under a title that says what the letters stood for then."""

    title: str
    comparison: ShownComparison

    @cached_property
    def html(self) -> str:
        """The comparison as it shows itself."""
        return self.comparison._repr_html_()


def refuse_what_cannot_be_compared(n_settings: int, metrics: Sequence[str]) -> None:
    """Refuse before anything is computed."""
    if n_settings < 2:
        raise ConfigError("There is one setting only: change a toggle, and it is compared with what it was.")
    if problems := metric_problems(metrics, False):
        raise ConfigError(" ".join(problems))


def quick_comparison(
    pipelines: Mapping[str, Pipeline],
    labels: Sequence[str],
    n: int,
    metrics: Sequence[str],
    tell: Callable[[str, float], None],
) -> QuickComparison:
    """Compare pipelines by letter on `n` questions, a stratified sample; `tell` is told of each step and may end it."""
    found = compare(pipelines, metrics, questions=n, progress=tell)
    settings = ", ".join(f"{letter} {label}" for letter, label in zip(pipelines, labels, strict=True))
    return QuickComparison(f"On {counted(len(found.questions), 'question')}: {settings}", found)
