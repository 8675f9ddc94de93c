"""The bill of a sweep: what it is going to cost, told before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rag_lab import home as home_folder
from rag_lab.experiment.foresight_plan import foresee
from rag_lab.experiment.manifest import now
from rag_lab.experiment.price_checks import price_of
from rag_lab.experiment.rates import Key, Rate, read_rates
from rag_lab.experiment.work import Unit, Work

if TYPE_CHECKING:
    from rag_lab.experiment.plan import Plan


@dataclass(frozen=True, slots=True)
class BillRow:
    """What one stage or metric is going to do with one model; see `Work` for the first six fields.

    `tokens_measured`: tokens are a mean of earlier sweeps; otherwise they are at most, by prompts and settings.
    `cost_usd` is None where calls cost money and no table has a price, `minutes` where no rate was measured yet.
    """

    purpose: str
    model: str
    unit: Unit
    n: int
    at_most: bool
    remembered: int
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_measured: bool = False
    cost_usd: float | None = 0.0
    minutes: float | None = 0.0

    @property
    def calls(self) -> int:
        """Calls of a chat model; 0 for what another kind of model does."""
        return self.n if self.unit == "call" else 0

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True)
class Bill:
    """An estimate of the work of a plan, made at a time; one row a stage or metric and model."""

    rows: tuple[BillRow, ...]
    made: datetime

    @property
    def calls(self) -> int:
        """Calls of chat models."""
        return sum(row.calls for row in self.rows)

    @property
    def cost_usd(self) -> float | None:
        """Dollars of all calls, or None where a price is missing."""
        return _sum([row.cost_usd for row in self.rows])

    @property
    def minutes(self) -> float | None:
        """Minutes of all work, one after the other, or None where a rate is missing."""
        return _sum([row.minutes for row in self.rows])


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def estimate(plan: Plan, home: Path | None = None) -> Bill:
    """Return what a sweep of `plan` would do now. No model is loaded and no index built.

    Raises:
        ModelError: if a model cannot tell its identity.
        ConfigError: if the user's price table cannot be read, or nothing can be written to the home folder.
    """
    folder = home or home_folder.usable_home()
    rates = read_rates(folder)
    return Bill(tuple(_row(work, rates) for work in foresee(plan, folder)), now())


def _row(work: Work, rates: Mapping[Key, Rate]) -> BillRow:
    row = BillRow(
        work.purpose, work.model, work.unit, work.n, work.at_most, work.remembered, work.tokens_in, work.tokens_out
    )
    rate = rates.get((work.purpose, work.model))
    if rate is None:
        is_timed = work.n and work.unit != "score"  # scores that only embed are a part of the notebook's minutes
        return replace(row, cost_usd=_cost_usd(row), minutes=None if is_timed else 0.0)
    tokens_in, tokens_out = rate.tokens_of(work.n)
    measured = replace(
        row,
        tokens_in=min(tokens_in, row.tokens_in),
        tokens_out=min(tokens_out, row.tokens_out),
        tokens_measured=True,
        minutes=rate.seconds_of(work.n) / 60,
    )
    return replace(measured, cost_usd=_cost_usd(measured))


def _cost_usd(row: BillRow) -> float | None:
    found = price_of(row.model) if row.calls else "free"
    if found == "free":
        return 0.0
    return None if found is None else found.cost_usd(row.tokens_in, row.tokens_out, row.calls)
