"""The effects of a run as tables."""

from __future__ import annotations

from typing import Any

from rag_lab._kit.numbers import p_value, signed, signed_interval
from rag_lab._kit.wording import short_verdict
from rag_lab.comparison.effects import EffectsFound
from rag_lab.report.tables.table import Table

_HEADER = ("effect", "n", "difference", "95% interval", "p", "corrected p", "effect size", "verdict")
_KINDS = {"main": "main effects", "interaction": "interactions", "conditional": "each effect at each level beside it"}


def effect_tables(found: EffectsFound, metric: str) -> list[Table]:
    """Return the effects on `metric` by kind. Toggles are not there: they are the differences from the baseline."""
    ours = found.table[found.table["metric"] == metric]
    return [
        Table(f"{metric}: {title}", _HEADER, rows, words=1)
        for kind, title in _KINDS.items()
        if (rows := tuple(_row(row) for row in ours[ours["kind"] == kind].to_dict("records")))
    ]


def _row(row: dict[Any, Any]) -> tuple[str, ...]:
    name = f"{row['factor']}={row['level']}"
    if row["kind"] == "interaction":
        name += f" × {row['other']}={row['other_level']}"
    elif row["kind"] == "conditional":
        name += f" while {row['other']}={row['other_level']}"
    return (
        f"{name}, against {row['first']}",
        str(row["n"]),
        signed(row["effect"]),
        signed_interval(row["low"], row["high"]),
        p_value(row["p_value"]),
        p_value(row["p_corrected"]),
        signed(row["effect_size"]),
        short_verdict(str(row["verdict"])),
    )
