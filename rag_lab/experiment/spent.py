"""What a run has spent, by stage and metric, and the rates that it measured while it did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rag_lab.experiment.manifest import VariantState
from rag_lab.experiment.rates import Key, Rate
from rag_lab.experiment.run_folder import DONE_FILE, LEDGER_FILE, RECORD_FILE, RunFolder, read_json
from rag_lab.ledger import Ledger

# What a variant takes beside its stages and its judge: a kernel, imports, metrics without a judge.
NOTEBOOK = "notebook"

Booked = dict[Key, Rate]


@dataclass(frozen=True, slots=True)
class Spent:
    """What was spent on one stage or metric: calls of chat models, their tokens and dollars, and minutes of work."""

    purpose: str
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    minutes: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """Return both together."""
        return Spent(
            self.purpose,
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.cost_usd + other.cost_usd,
            self.minutes + other.minutes,
        )


def spent_on_calls(run: RunFolder) -> list[Spent]:
    """Return what all starts of a sweep have spent on chat models, one row a stage or metric, in order of first use."""
    return _by_purpose(
        Spent(caller.purpose, n, made.tokens_in + made.tokens_out, made.cost_usd, made.seconds / 60)
        for caller, n, made in _ledger(run).calls()
    )


def spent(run: RunFolder) -> list[Spent]:
    """Return what a run has spent: on chat models, and the minutes of all else that its variants took."""
    work = [row for record in _read_all(run, RECORD_FILE).values() for row in record["work"]]
    others = [Spent(row["purpose"], minutes=row["seconds"] / 60) for row in work]
    variants_s = {name: done["seconds"] for name, done in _read_all(run, DONE_FILE).items()}
    rest_s = _rest_s(run, variants_s, sum(row["seconds"] for row in work))
    return _by_purpose([*spent_on_calls(run), *others, *([Spent(NOTEBOOK, minutes=rest_s / 60)] if variants_s else [])])


def booked_calls(run: RunFolder) -> Booked:
    """Return the answered calls of all starts of a sweep, by purpose and model."""
    totals: Booked = {}
    for caller, n, made in _ledger(run).calls(answered=True):
        rate = Rate(caller.purpose, caller.model, n, made.seconds, made.tokens_in, made.tokens_out)
        totals[rate.key] = totals[rate.key].plus(rate) if rate.key in totals else rate
    return totals


def measured_rates(run: RunFolder, states: Iterable[VariantState], before: Booked) -> list[Rate]:
    """Return the rates of what one start of a sweep did: the calls since `before`, and the variants it ran."""
    calls = [rate for now in booked_calls(run).values() if (rate := _since(now, before.get(now.key)))]
    ran = [state for state in states if state.status == "ok" and not state.resumed and state.record]
    work = [Rate(**row) for state in ran if state.record for row in state.record["work"]]
    variants_s = {state.variant_id: state.seconds for state in ran}
    rest_s = _rest_s(run, variants_s, sum(rate.seconds for rate in work))
    return [*calls, *work, *([Rate(NOTEBOOK, "", len(ran), rest_s)] if ran else [])]


def _by_purpose(rows: Iterable[Spent]) -> list[Spent]:
    totals: dict[str, Spent] = {}
    for row in rows:
        totals[row.purpose] = totals[row.purpose].plus(row) if row.purpose in totals else row
    return list(totals.values())


def _since(now: Rate, then: Rate | None) -> Rate | None:
    if then is None:
        return now
    n, seconds = now.n - then.n, now.seconds - then.seconds
    if not n:
        return None
    return Rate(*now.key, n, seconds, now.tokens_in - then.tokens_in, now.tokens_out - then.tokens_out)


def _rest_s(run: RunFolder, variants_s: Mapping[str, float], work_s: float) -> float:
    """Return what variants that took `variants_s` took beside their calls and the `work_s` of their stages."""
    calls_s = sum(made.seconds for caller, _, made in _ledger(run).calls(answered=True) if caller.payer in variants_s)
    return max(0.0, sum(variants_s.values()) - work_s - calls_s)


def _read_all(run: RunFolder, name: str) -> dict[str, Any]:
    """Return the content of this file of each variant that has it."""
    paths = {variant.variant_id: run.variant_dir(variant.variant_id) / name for variant in run.variants}
    return {variant_id: read_json(path) for variant_id, path in paths.items() if path.is_file()}


def _ledger(run: RunFolder) -> Ledger:
    return Ledger(run.path / LEDGER_FILE)
