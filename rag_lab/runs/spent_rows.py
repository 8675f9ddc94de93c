"""What a run spent beside what it was estimated to spend, as rows, which the manifest keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MEASURES = ("calls", "tokens", "cost_usd", "minutes")
COLUMNS = ("purpose", *(f"{measure}_{when}" for measure in MEASURES for when in ("estimated", "spent")))


def of_calls(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of stages and metrics that call: older manifests also have those whose minutes are other work."""
    return [row for row in rows if row.get("calls_estimated") or row.get("calls_spent")]


def with_total(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows, and below them their sum, `total`; nothing where there are none."""
    return [*map(dict, rows), total(rows)] if rows else []


def total(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums; one of which a part is not known is not known."""
    sums: dict[str, Any] = dict.fromkeys(COLUMNS[1:], 0)
    for row in rows:
        add(sums, {name: row.get(name) for name in sums})
    return {"purpose": "total"} | sums


def add(sums: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add `more` to `sums`."""
    for measure, value in more.items():
        sums[measure] = None if value is None or sums[measure] is None else sums[measure] + value


def minutes_told(rows: Iterable[Mapping[str, Any]]) -> str:
    """Say how many minutes of calls were estimated and spent."""
    sums = total(rows)
    both = (sums[f"minutes_{when}"] for when in ("estimated", "spent"))
    estimated, actual = ("?" if minutes is None else f"{minutes:,.1f}" for minutes in both)
    return f"minutes of calls, one after the other: {estimated} estimated, {actual} spent"
