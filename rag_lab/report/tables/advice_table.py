"""What each module does, as a table: the first one of a report."""

from __future__ import annotations

from collections.abc import Sequence

from rag_lab._kit.numbers import DASH, signed, signed_interval
from rag_lab.comparison.advice.module_rows import ModuleRow
from rag_lab.comparison.comparison import Comparison
from rag_lab.report.tables.table import Table

_HEADER = ("verdict", "n", "effect", "95% interval", "a question costs", "because")


def module_table(comparison: Comparison, rows: Sequence[ModuleRow]) -> Table:
    """Return a row a module: verdict, effect on the main metric, price, and what qualifies the verdict."""
    is_grid = comparison.effects.is_grid
    title = f"against {comparison.name(comparison.run.baseline)}"
    if is_grid:
        title = "averaged over the other modules"
    elif any(row.against for row in rows):
        title = "of the pairs that the experiment is about"
    metric = comparison.directed(comparison.main_metric or "")
    header = ("module" if is_grid else "variant", *_HEADER)
    return Table(f"Effects on {metric}, {title}", header, tuple(_row(comparison, row) for row in rows), 2, 2)


def _row(comparison: Comparison, row: ModuleRow) -> tuple[str, ...]:
    name = comparison.name(row.variant_id) if row.variant_id else row.name
    name += f", against {row.against}" if row.against else ""
    effect = DASH if row.effect is None else signed(row.effect)
    return (name, row.word, str(row.n), effect, signed_interval(row.low, row.high), row.price.signed, row.why)
