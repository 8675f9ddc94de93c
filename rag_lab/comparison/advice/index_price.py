"""What the index of each variant takes: chunks to embed, the minutes that this took, and the disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_lab._kit.wording import DASH
from rag_lab.comparison.run_tables import RunTables


@dataclass(frozen=True, slots=True)
class IndexPrice:
    """What one index takes; `seconds` are those of its embeddings as first computed, None where that is not known."""

    chunks: int
    seconds: float | None
    n_bytes: int

    @property
    def cells(self) -> tuple[str, str, str]:
        """Chunks, minutes and MB, for a table."""
        minutes = DASH if self.seconds is None else _minutes(self.seconds)
        return f"{self.chunks:,}", minutes, f"{self.n_bytes / 1e6:,.1f}"

    def __str__(self) -> str:
        chunks, minutes, megabytes = self.cells
        took = "" if self.seconds is None else f" ({minutes} minutes)"
        return f"{chunks} chunks to embed{took} and {megabytes} MB"


def index_prices(tables: RunTables) -> dict[str, IndexPrice]:
    """Return what the index of each variant takes that recorded it."""
    found = {
        plan.variant_id: tables.run.recorded(plan.variant_id, "index", _price, "its index") for plan in tables.variants
    }
    return {variant: price for variant, price in found.items() if price is not None}


def index_cells(tables: RunTables) -> dict[str, tuple[str, str, str]]:
    """Return chunks, minutes and MB of each variant's index, for a table."""
    found = index_prices(tables)
    nothing = (DASH, DASH, DASH)
    return {
        plan.variant_id: found[plan.variant_id].cells if plan.variant_id in found else nothing
        for plan in tables.variants
    }


def index_told(tables: RunTables, variant: str, against: str, name: str) -> list[str]:
    """Say what the index of a variant takes, and that of another, called `name`; nothing where chunks are as many."""
    found = index_prices(tables)
    ours, theirs = found.get(variant), found.get(against)
    if ours is None or theirs is None or ours.chunks == theirs.chunks:
        return []
    return [f"Its index takes {ours}; that of {name} {theirs}."]


def _price(recorded: Mapping[str, Any]) -> IndexPrice:
    seconds = recorded["seconds"]
    return IndexPrice(int(recorded["chunks"]), None if seconds is None else float(seconds), int(recorded["bytes"]))


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}" if seconds >= 6 else f"{seconds / 60:.2g}"
