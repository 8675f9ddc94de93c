"""Rows as Markdown tables."""

from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def markdown(rows: Sequence[Row]) -> str:
    """Return `rows` as a table, the columns by the keys of the first."""
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(told(row.get(name)) for name in head) + " |" for row in rows]
    return "\n".join(lines)


def told(value: Any) -> str:
    """Return a number to three decimals; what there is none of as a dash."""
    if isinstance(value, str):
        return value
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def spread(rows: Sequence[Row], by: Sequence[str], across: Sequence[str], value: str) -> list[Row]:
    """Return one row for each combination of `by`, with a column for each of `across`, in order of appearance."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        line = found.setdefault(tuple(row[name] for name in by), {name: row[name] for name in by})
        line[" × ".join(str(row[name]) for name in across)] = row[value]
    return list(found.values())
