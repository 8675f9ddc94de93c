"""What a run has spent on chat models beside what was estimated before its first call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from rag_lab._kit.digest import whole_file
from rag_lab._kit.wording import text_table
from rag_lab.errors import DamagedFile
from rag_lab.experiment.forecast.cost_estimate import TITLES, CostEstimate, Key, Rate, amount_text
from rag_lab.experiment.forecast.work import Work
from rag_lab.memory.ledger import Ledger
from rag_lab.runs.run_folder import BILL_FILE, LEDGER_FILE, RunFolder
from rag_lab.runs.run_manifest import COLUMNS, MEASURES, add, minutes_text, of_calls, with_total

if TYPE_CHECKING:
    import pandas as pd

_LOGGER = logging.getLogger(__name__)


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
    rows: dict[str, Spent] = {}
    for caller, n, made in Ledger(run.path / LEDGER_FILE).calls():
        old = rows.get(caller.purpose, Spent(caller.purpose))
        rows[caller.purpose] = Spent(
            caller.purpose,
            old.calls + n,
            old.tokens + made.tokens_in + made.tokens_out,
            old.cost_usd + made.cost_usd,
            old.minutes + made.seconds / 60,
        )
    return list(rows.values())


def measured_rates(run: RunFolder) -> list[Rate]:
    """Return the rates of the answered calls of all starts of a sweep, by purpose and model, whoever paid."""
    rates: dict[Key, Rate] = {}
    for caller, n, made in Ledger(run.path / LEDGER_FILE).calls(answered=True):
        key = (caller.purpose, caller.model)
        old = rates.get(key)
        rates[key] = Rate(
            *key,
            (old.n if old else 0) + n,
            (old.seconds if old else 0.0) + made.seconds,
            (old.tokens_in if old else 0) + made.tokens_in,
            (old.tokens_out if old else 0) + made.tokens_out,
        )
    return list(rates.values())


@dataclass(frozen=True, slots=True)
class KeptEstimate:
    """The estimate of the first start of a plan; `before` is what earlier plans in the same run folder had spent."""

    plan: str
    bill: CostEstimate
    before: tuple[Spent, ...]


_FILE = TypeAdapter(KeptEstimate)


def kept_estimate(run: RunFolder, plan: str, make: Callable[[], CostEstimate]) -> KeptEstimate:
    """Return the estimate that the run folder keeps of the same plan (told by its digest), or make one.

    So a sweep that was stopped and goes on is held to what was estimated for the whole of it.
    """
    try:
        kept = _kept(run)
    except DamagedFile as error:
        _LOGGER.warning("%s: what is left to do is estimated anew.", error.what)
        kept = None
    return kept if kept and kept.plan == plan else KeptEstimate(plan, make(), tuple(spent(run)))


def keep_estimate(run: RunFolder, bill: KeptEstimate) -> None:
    """Keep the estimate in the run folder."""
    with whole_file(run.path / BILL_FILE) as partial:
        partial.write_bytes(_FILE.dump_json(bill, indent=2))


def spent_and_estimated(run: RunFolder) -> pd.DataFrame:
    """Return one row a stage or metric, and `total`, with the columns `COLUMNS`.

    Estimates are missing (`<NA>`) where nothing was estimated: no price is known, no rate had been measured. Minutes
    are those of calls, one after the other, whatever ran side by side.
    """
    import pandas as pd

    table = pd.DataFrame(with_total(spending_rows(run)), columns=list(COLUMNS))
    kinds = {name: "Int64" if name.startswith(("calls", "tokens")) else "Float64" for name in COLUMNS[1:]}
    return table.astype(kinds)


def spending_rows(run: RunFolder) -> list[Mapping[str, Any]]:
    """Return one mapping with the keys `COLUMNS` for each stage or metric that calls; None where none was estimated."""
    kept = _kept(run)
    actual = {row.purpose: row for row in spent(run)}
    estimated: dict[str, dict[str, Any]] = {}
    expected: list[Work | Spent] = [*kept.bill.rows, *kept.before] if kept else []
    for row in expected:
        sums = estimated.setdefault(row.purpose, dict.fromkeys(MEASURES, 0))
        add(sums, {measure: getattr(row, measure) for measure in MEASURES})
    nothing = dict.fromkeys(MEASURES, None if kept is None else 0)
    rows: list[Mapping[str, Any]] = []
    for purpose in dict.fromkeys([*estimated, *actual]):
        before, spent_now = estimated.get(purpose, nothing), actual.get(purpose, Spent(purpose))
        both: dict[str, Any] = {"purpose": purpose}
        for measure in MEASURES:
            both |= {f"{measure}_estimated": before[measure], f"{measure}_spent": getattr(spent_now, measure)}
        rows.append(both)
    return of_calls(rows)


def _kept(run: RunFolder) -> KeptEstimate | None:
    path = run.path / BILL_FILE
    try:
        return _FILE.validate_json(path.read_bytes()) if path.is_file() else None
    except ValidationError:
        raise DamagedFile(path, "it holds no bill") from None


def spent_text(run: RunFolder) -> str:
    """Return what was spent beside what was estimated, one line a stage or metric, then the minutes."""
    rows = spending_rows(run)
    columns = [(measure, when) for measure in TITLES for when in ("estimated", "spent")]
    header = ("stage or metric", *(f"{TITLES[measure]} {when}" for measure, when in columns))
    cells = [(row["purpose"], *(amount_text(m, row[f"{m}_{when}"]) for m, when in columns)) for row in rows]
    return f"{text_table(header, cells)}\n- {minutes_text(rows)}"
