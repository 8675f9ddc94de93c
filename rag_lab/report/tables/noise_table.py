"""How the variance of a score splits, as a table."""

from __future__ import annotations

from rag_lab._kit.numbers import DASH, number, plain
from rag_lab.comparison.run_tables import RunTables
from rag_lab.report.tables.table import Table
from rag_lab.statistics.noise_components import NoiseComponents, noise_floor

_HEADER = ("metric", "questions", "generation", "judge", "repeats", "noise floor of a difference")


def noise_table(tables: RunTables) -> Table:
    """Return the variance of a single score by its source, in percent, and the floor below which nothing is told."""
    rows = [_row(metric, found) for metric, found in tables.noise.items()]
    return Table("Variance of a single score by source, and the noise floor", _HEADER, tuple(rows))


def _row(metric: str, found: NoiseComponents) -> tuple[str, ...]:
    parts = (found.question, found.generation, found.judge)
    total = sum(value or 0.0 for value in parts)
    shares = [DASH if value is None or not total else f"{100 * value / total:.0f}%" for value in parts]
    return (metric, *shares, f"{found.repeats:.3g}", plain(number(noise_floor(found).value)))
