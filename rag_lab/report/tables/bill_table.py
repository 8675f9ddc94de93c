"""What the sweep was estimated to take and what it took, side by side."""

from __future__ import annotations

from typing import Any

from rag_lab._kit.numbers import DASH, number
from rag_lab.comparison.run_tables import RunTables
from rag_lab.report.tables.table import Table
from rag_lab.runs.spent_rows import minutes_told, of_calls, with_total

_DECIMALS = {"calls": 0, "tokens": 0, "cost_usd": 4}
_UNITS = {"calls": "calls", "tokens": "tokens", "cost_usd": "USD"}


def bill_table(tables: RunTables) -> Table:
    """Return a row a stage or metric and one of all, minutes in the title; no rows where the run is not finished."""
    columns = [(measure, when) for measure in _UNITS for when in ("estimated", "spent")]
    header = ("stage or metric", *(f"{_UNITS[measure]} {when}" for measure, when in columns))
    title = "What the sweep was estimated to take, and took"
    spent = of_calls(tables.manifest.get("spent", []))
    if "spent" in tables.manifest:
        title += f"; {minutes_told(spent)}"
    rows = tuple(
        (str(row["purpose"]), *(_text(row.get(f"{measure}_{when}"), _DECIMALS[measure]) for measure, when in columns))
        for row in with_total(spent)
    )
    return Table(title, header, rows)


def _text(value: Any, decimals: int) -> str:
    known = number(value)
    return DASH if known is None else f"{known:,.{decimals}f}"
