"""The bill of a sweep: what it is going to cost, told before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rag_lab._kit import home as home_folder
from rag_lab._kit.module_files import modules_beside
from rag_lab.experiment.forecast.foreseen_work import Work
from rag_lab.experiment.forecast.foresight_plan import foresee
from rag_lab.experiment.forecast.grown_tree import GrownTree
from rag_lab.experiment.forecast.machine_minutes import MachineMinutes, machine_minutes
from rag_lab.experiment.forecast.race_forecast import sweeps_of
from rag_lab.experiment.forecast.rates import Rate, read_rates
from rag_lab.experiment.manifest import now
from rag_lab.experiment.model_checks import price_of

if TYPE_CHECKING:
    from rag_lab.experiment.plan import Plan

ASSUMED_S = {"call": 5.0, "score": 5.0, "pair": 1.0}  # of what has not been measured here


@dataclass(frozen=True, slots=True)
class Bill:
    """An estimate of the work of a plan, made at a time; one row a stage or metric and model."""

    rows: tuple[Work, ...]
    made: datetime
    machine: MachineMinutes | None = None

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
        """Minutes of all calls, one after the other, or None where a rate is missing."""
        return _sum([row.minutes for row in self.rows])


def minutes_ahead(bill: Bill) -> tuple[float, list[str]]:
    """Return about how many minutes all of it takes, one after the other, and what was assumed for it, in words.

    A kind of work that no sweep has measured here is taken to be as slow as that of a packaged model on two cores.
    """
    minutes, assumed = bill.machine.total if bill.machine else 0.0, []
    for row in bill.rows:
        minutes += row.minutes or 0.0
        if row.n and row.unit in ASSUMED_S and (row.unit != "call" or row.minutes is None):
            minutes += row.n * ASSUMED_S[row.unit] / 60
            assumed.append(f"{row.purpose}: {row.n:,} {row.unit}s, {ASSUMED_S[row.unit]:g} s each assumed")
    return minutes, assumed


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def estimate(plan: Plan, home: Path | None = None, tree: GrownTree | None = None) -> Bill:
    """Return what a sweep of `plan` would do now, a race at most. No model is loaded and no index built.

    Raises:
        ModelError: if a model cannot tell its identity.
        ConfigError: if the user's price table cannot be read, or nothing can be written to the home folder.
    """
    folder = home or home_folder.usable_home()
    rates = read_rates(folder)
    with modules_beside(plan.folder):
        foreseen = foresee(sweeps_of(plan, folder, foresee), folder, tree)
    rows = tuple(_billed(work, rates.get((work.purpose, work.model))) for work in foreseen)
    return Bill(rows, now(), machine_minutes(plan, foreseen, rates))


def _billed(work: Work, rate: Rate | None) -> Work:
    """Return `work` with its dollars and minutes, and with the tokens of earlier calls where there were any."""
    if work.unit == "score":
        return replace(work, cost_usd=0.0 if price_of(work.model) == "free" else None)
    if not work.calls:
        return work
    if rate is None or _measured_without_thinking(rate, work):
        return replace(work, cost_usd=_cost_usd(work), minutes=None)
    share = work.n / rate.n
    measured = replace(
        work,
        tokens_in=min(round(rate.tokens_in * share), work.tokens_in),
        tokens_out=min(round(rate.tokens_out * share), work.tokens_out),
        tokens_measured=True,
        minutes=rate.seconds * share / 60,
    )
    return replace(measured, cost_usd=_cost_usd(measured))


def _measured_without_thinking(rate: Rate, work: Work) -> bool:
    """Tell whether earlier calls may not have thought, and these may: their replies fit without a thought."""
    reply_tokens = (work.tokens_out - work.thinking_tokens) / work.n
    return work.thinking_tokens > 0 and rate.tokens_out / rate.n <= reply_tokens


def _cost_usd(work: Work) -> float | None:
    found = price_of(work.model)
    if found == "free":
        return 0.0
    return None if found is None else found.cost_usd(work.tokens_in, work.tokens_out, work.calls)
