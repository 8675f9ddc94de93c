"""How much of a score is noise, as the report says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_lab.numbers import DASH, number, plain
from rag_lab.report.tables import Table
from rag_lab.statistics.noise import NoiseComponents, noise_floor, noise_sentence

if TYPE_CHECKING:
    from rag_lab.report.comparison import Comparison

_HEADER = ("metric", "questions", "generation", "judge", "repeats", "noise floor of a difference")
NOT_MEASURED = (
    "The noise was not measured, since every question was asked once: how much the same run would differ from itself "
    "is not known; `repeats: 2` or more in the experiment file measures it."
)


def noise_sentences(comparison: Comparison) -> list[str]:
    """Return a sentence a metric, or one that the noise was not measured."""
    told = [noise_sentence(found, metric) for metric, found in comparison.noise.items()]
    return told or [NOT_MEASURED]


def noise_table(comparison: Comparison) -> Table:
    """Return the variance of a single score by its source, in percent, and the floor below which nothing is told."""
    rows = [_row(metric, found) for metric, found in comparison.noise.items()]
    return Table("Variance of a single score by source, and the noise floor", _HEADER, tuple(rows))


def _row(metric: str, found: NoiseComponents) -> tuple[str, ...]:
    parts = (found.question, found.generation, found.judge)
    total = sum(value or 0.0 for value in parts)
    shares = [DASH if value is None or not total else f"{100 * value / total:.0f}%" for value in parts]
    return (metric, *shares, f"{found.repeats:.3g}", plain(number(noise_floor(found).value)))
