"""What a run has spent on chat models, by stage and metric, and the rates that it measured while it did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rag_lab.experiment.forecast.rates import Key, Rate
from rag_lab.memory.ledger import Caller, Ledger, Made
from rag_lab.runs.run_folder import LEDGER_FILE, RunFolder


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent on one stage or metric: calls, their tokens and dollars, and minutes one after the other."""

    purpose: str
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    minutes: float = 0.0


def spent(run: RunFolder) -> list[Spent]:
    """Return what all starts of a sweep have spent, one row a stage or metric, in order of first use."""
    sums = _by_model(Ledger(run.path / LEDGER_FILE).calls())
    rows: dict[str, Spent] = {}
    for (purpose, _), (n, made) in sums.items():
        old = rows.get(purpose, Spent(purpose))
        rows[purpose] = Spent(
            purpose,
            old.calls + n,
            old.tokens + made.tokens_in + made.tokens_out,
            old.cost_usd + made.cost_usd,
            old.minutes + made.seconds / 60,
        )
    return list(rows.values())


def measured_rates(run: RunFolder) -> list[Rate]:
    """Return the rates of the answered calls of all starts of a sweep."""
    sums = _by_model(Ledger(run.path / LEDGER_FILE).calls(answered=True))
    return [Rate(*key, n, made.seconds, made.tokens_in, made.tokens_out) for key, (n, made) in sums.items()]


def _by_model(calls: Iterable[tuple[Caller, int, Made]]) -> dict[Key, tuple[int, Made]]:
    """Return the number and the totals of calls by purpose and model, whoever paid."""
    sums: dict[Key, tuple[int, Made]] = {}
    for caller, n, made in calls:
        key = (caller.purpose, caller.model)
        n_before, before = sums.get(key, (0, Made(0, 0, 0.0, 0.0)))
        sums[key] = (
            n_before + n,
            Made(
                before.tokens_in + made.tokens_in,
                before.tokens_out + made.tokens_out,
                before.cost_usd + made.cost_usd,
                before.seconds + made.seconds,
            ),
        )
    return sums
