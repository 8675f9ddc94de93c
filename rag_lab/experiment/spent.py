"""What a run has spent, by stage and metric, and the rates that it measured while it did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rag_lab.experiment.manifest import VariantState
from rag_lab.experiment.rates import Key, Rate
from rag_lab.experiment.run_folder import LEDGER_FILE, RECORD_FILE, RunFolder, read_json
from rag_lab.ledger import Ledger

# What a variant takes beside its stages and its judge: a kernel, imports, metrics that ask no model.
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
    """Return what a run has spent: on chat models, and the minutes of all else that its variants computed."""
    records = (run.variant_dir(variant.variant_id) / RECORD_FILE for variant in run.variants)
    work = [row for path in records if path.is_file() for row in read_json(path)["work"]]
    others = (Spent(row["purpose"], minutes=row["seconds"] / 60) for row in work)
    return _by_purpose([*spent_on_calls(run), *others])


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
    return [*calls, *work, *_notebooks(run, ran, sum(rate.seconds for rate in work))]


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


def _notebooks(run: RunFolder, ran: Sequence[VariantState], work_s: float) -> list[Rate]:
    """Return what the variants took beside their calls and their stages."""
    if not ran:
        return []
    names = {state.variant_id for state in ran}
    calls_s = sum(made.seconds for caller, _, made in _ledger(run).calls(answered=True) if caller.payer in names)
    rest_s = sum(state.seconds for state in ran) - work_s - calls_s
    return [Rate(NOTEBOOK, "", len(ran), max(0.0, rest_s))]


def _ledger(run: RunFolder) -> Ledger:
    return Ledger(run.path / LEDGER_FILE)
