"""What the sweep was estimated to take and what it took, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_lab.numbers import DASH, number
from rag_lab.report.tables import Table

if TYPE_CHECKING:
    from rag_lab.report.comparison import Comparison

_DECIMALS = {"calls": 0, "tokens": 0, "cost_usd": 4}
_UNITS = {"calls": "calls", "tokens": "tokens", "cost_usd": "USD"}


def bill_table(comparison: Comparison) -> Table:
    """Return a row a stage or metric and one of all, minutes in the title; no rows where the run is not finished."""
    from rag_lab.experiment.bill import bill_rows, minutes_told, spent_and_estimated

    columns = [(measure, when) for measure in _UNITS for when in ("estimated", "spent")]
    header = ("stage or metric", *(f"{_UNITS[measure]} {when}" for measure, when in columns))
    rows: list[tuple[str, ...]] = []
    title = "What the sweep was estimated to take, and took"
    if "spent" in comparison.manifest:
        title += f"; {minutes_told(bill_rows(comparison.run))}"
        for row in spent_and_estimated(comparison.run).to_dict("records"):
            numbers = (_text(row[f"{measure}_{when}"], _DECIMALS[measure]) for measure, when in columns)
            rows.append((str(row["purpose"]), *numbers))
    return Table(title, header, tuple(rows))


def _text(value: Any, decimals: int) -> str:
    known = number(value)
    return DASH if known is None else f"{known:,.{decimals}f}"
