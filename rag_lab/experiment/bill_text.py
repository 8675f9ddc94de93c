"""A bill as text: for a dry run, and for the end of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from rag_lab.experiment.bill import MEASURES, bill_rows
from rag_lab.experiment.config import Limits
from rag_lab.experiment.estimate import Bill, BillRow
from rag_lab.experiment.price_checks import price_of
from rag_lab.experiment.run_folder import RunFolder
from rag_lab.experiment.table import text_table

UNKNOWN = "?"
AT_MOST = "≤"
_WIDTH = 110  # of lines of prose
_TITLES = {"calls": "calls", "tokens": "tokens", "cost_usd": "USD", "minutes": "minutes"}


def bill_text(bill: Bill, limits: Limits) -> str:
    """Return the work of each stage and metric, the total, and what the numbers rest on."""
    header = ("stage or metric", "model", "remembered", "to do", "", "tokens read", "written", "USD", "minutes")
    rows = [_cells(row) for row in bill.rows]
    told = (fill(f"- {note}", _WIDTH, subsequent_indent="  ") for note in (*_notes(bill), *_stops(bill, limits)))
    return "\n".join([text_table(header, [*rows, _total(bill)]), *told])


def spent_text(run: RunFolder) -> str:
    """Return what was spent beside what was estimated, one line a stage or metric."""
    rows = [row for row in bill_rows(run) if any(row[f"{m}_{when}"] for m in MEASURES for when in _WHEN)]
    header = ("stage or metric", *(f"{_TITLES[m]} {when}" for m in MEASURES for when in _WHEN))
    cells = [(row["purpose"], *(_amount(m, row[f"{m}_{when}"]) for m in MEASURES for when in _WHEN)) for row in rows]
    return text_table(header, cells)


_WHEN = ("estimated", "spent")


def _cells(row: BillRow) -> tuple[str, ...]:
    remembered = "-" if row.unit in ("file", "variant") else f"{row.remembered:,}"
    of_calls = ("", "", "")
    if row.unit == "call":
        bound = "" if row.tokens_measured or not row.n else f"{AT_MOST} "
        of_calls = (f"{bound}{row.tokens_in:,}", f"{bound}{row.tokens_out:,}", _amount("cost_usd", row.cost_usd))
    minutes = "" if row.unit == "score" else _amount("minutes", row.minutes)
    to_do = f"{AT_MOST} {row.n:,}" if row.at_most else f"{row.n:,}"
    unit = row.unit if row.n == 1 else f"{row.unit}s"
    return (row.purpose, row.model, remembered, to_do, unit, *of_calls, minutes)


def _total(bill: Bill) -> tuple[str, ...]:
    calls = [row for row in bill.rows if row.unit == "call"]
    bound = f"{AT_MOST} " if any(row.at_most for row in calls) else ""
    tokens_bound = f"{AT_MOST} " if any(row.n and not row.tokens_measured for row in calls) else ""
    tokens_in, tokens_out = sum(row.tokens_in for row in calls), sum(row.tokens_out for row in calls)
    return (
        "total", "", "", f"{bound}{bill.calls:,}", "calls", f"{tokens_bound}{tokens_in:,}",
        f"{tokens_bound}{tokens_out:,}", _amount("cost_usd", bill.cost_usd), _amount("minutes", bill.minutes),
    )  # fmt: skip


def _amount(measure: str, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if measure == "cost_usd":
        return f"{value:,.4f}" if 0 < value < 1 else f"{value:,.2f}"
    return f"{value:,.1f}" if measure == "minutes" else f"{value:,}"


def _notes(bill: Bill) -> list[str]:
    notes = []
    if any(row.at_most or (row.calls and not row.tokens_measured) for row in bill.rows):
        notes.append(
            f"{AT_MOST} at most: a stage that waits for another's result is counted as if it needed every call, and "
            "prompts and replies, until a sweep has measured them, as long as the settings let them become."
        )
    if unrated := [row.purpose for row in bill.rows if row.minutes is None]:
        names = ", ".join(dict.fromkeys(unrated))
        notes.append(f"No rate measured yet on this machine for {names}; the first sweep measures it.")
    if any(row.minutes for row in bill.rows):
        notes.append("Minutes are sums of work; with --jobs N they pass in an N-th of the time at best.")
    return notes + _prices([row.model for row in bill.rows if row.unit == "call"])


def _prices(models: Sequence[str]) -> list[str]:
    found = {model: price_of(model) for model in dict.fromkeys(models)}
    told = [f"{m} by {known.table} of {known.checked}" for m, known in found.items() if known and known != "free"]
    missing = [model for model, known in found.items() if known is None]
    notes = [f"Prices: {', '.join(told)}; correct them in prices.toml in the home folder."] if told else []
    if missing:
        notes.append(f"No price is known for {', '.join(missing)}; add one to prices.toml in the home folder.")
    return notes


def _stops(bill: Bill, limits: Limits) -> list[str]:
    """Return which limits the estimate passes."""
    wanted = {"cost_usd": bill.cost_usd, "calls": bill.calls, "minutes": bill.minutes}
    given = {name: getattr(limits, name) for name in wanted}
    return [
        f"limits.{name} = {given[name]:g} is less than the {_amount(name, amount)} {_TITLES[name]} above: the sweep "
        "may stop there, and goes on once the limit is raised."
        for name, amount in wanted.items()
        if given[name] is not None and amount is not None and amount > given[name]
    ]
