"""Settings of the bench compared on a sample of questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_lab._kit.wording import counted
from rag_lab.errors import ConfigError
from rag_lab.evaluation.registry import problems as metric_problems
from rag_lab.experiment.run.compare_pipelines import compare
from rag_lab.pipeline import Pipeline
from rag_lab.report.shown_comparison import ShownComparison


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
    """Refuse before anything is computed.

    Raises:
        ConfigError: if there is one setting only, or a metric cannot be used.
    """
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
    told = ", ".join(f"{letter} {label}" for letter, label in zip(pipelines, labels, strict=True))
    return QuickComparison(f"On {counted(len(found.questions), 'question')}: {told}", found)
