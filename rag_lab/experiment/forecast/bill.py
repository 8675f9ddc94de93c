"""The bill of a run: what was estimated before its first call, and what has been spent, side by side."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from rag_lab._kit.whole_file import whole_file
from rag_lab.errors import DamagedFile
from rag_lab.experiment.forecast.estimate import Bill
from rag_lab.experiment.forecast.foreseen_work import Work
from rag_lab.experiment.forecast.spent import Spent, spent
from rag_lab.runs.run_folder import BILL_FILE, RunFolder
from rag_lab.runs.run_manifest import COLUMNS, MEASURES, add, of_calls, with_total

if TYPE_CHECKING:
    import pandas as pd

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeptBill:
    """The estimate of the first start of a plan; `before` is what earlier plans in the same run folder had spent."""

    plan: str
    bill: Bill
    before: tuple[Spent, ...]


_FILE = TypeAdapter(KeptBill)


def bill_of(run: RunFolder, plan: str, make: Callable[[], Bill]) -> KeptBill:
    """Return the estimate that the run folder keeps of the same plan (told by its digest), or make one.

    So a sweep that was stopped and goes on is held to what was estimated for the whole of it.
    """
    try:
        kept = _kept(run)
    except DamagedFile as error:
        _LOGGER.warning("%s: what is left to do is estimated anew.", error.what)
        kept = None
    return kept if kept and kept.plan == plan else KeptBill(plan, make(), tuple(spent(run)))


def keep_bill(run: RunFolder, bill: KeptBill) -> None:
    """Keep the estimate in the run folder."""
    with whole_file(run.path / BILL_FILE) as partial:
        partial.write_bytes(_FILE.dump_json(bill, indent=2))


def spent_and_estimated(run: RunFolder) -> pd.DataFrame:
    """Return one row a stage or metric, and `total`, with the columns `COLUMNS`.

    Estimates are missing (`<NA>`) where nothing was estimated: no price is known, no rate had been measured. Minutes
    are those of calls, one after the other, whatever ran side by side.
    """
    import pandas as pd

    table = pd.DataFrame(with_total(bill_rows(run)), columns=list(COLUMNS))
    kinds = {name: "Int64" if name.startswith(("calls", "tokens")) else "Float64" for name in COLUMNS[1:]}
    return table.astype(kinds)


def bill_rows(run: RunFolder) -> list[Mapping[str, Any]]:
    """Return one mapping with the keys `COLUMNS` for each stage or metric that calls; None where none was estimated."""
    kept = _kept(run)
    actual = {row.purpose: row for row in spent(run)}
    estimated: dict[str, dict[str, Any]] = {}
    if kept is not None:
        for row in kept.bill.rows:
            add(estimated.setdefault(row.purpose, dict.fromkeys(MEASURES, 0)), _measures(row))
        for earlier in kept.before:
            add(estimated.setdefault(earlier.purpose, dict.fromkeys(MEASURES, 0)), _measures(earlier))
    nothing = dict.fromkeys(MEASURES, None if kept is None else 0)
    rows = (
        _row(purpose, estimated.get(purpose, nothing), _measures(actual.get(purpose, Spent(purpose))))
        for purpose in dict.fromkeys([*estimated, *actual])
    )
    return of_calls(rows)


def _kept(run: RunFolder) -> KeptBill | None:
    path = run.path / BILL_FILE
    try:
        return _FILE.validate_json(path.read_bytes()) if path.is_file() else None
    except ValidationError:
        raise DamagedFile(path, "it holds no bill") from None


def _measures(row: Work | Spent) -> dict[str, Any]:
    return {measure: getattr(row, measure) for measure in MEASURES}


def _row(purpose: str, estimated: dict[str, Any], actual: dict[str, Any]) -> dict[str, Any]:
    pairs = ((f"{m}_estimated", estimated[m], f"{m}_spent", actual[m]) for m in MEASURES)
    return {"purpose": purpose} | {key: value for a, x, b, y in pairs for key, value in ((a, x), (b, y))}
