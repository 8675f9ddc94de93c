"""What a plan will cost, and what a run has spent, as text."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from rag_lab._kit.wording import listing, text_table
from rag_lab.experiment.config import Limits
from rag_lab.experiment.forecast.cost_estimate import CostEstimate, MachineMinutes
from rag_lab.experiment.forecast.spending import spending_rows
from rag_lab.experiment.forecast.work import Work
from rag_lab.experiment.model_checks import embedding_price, price_of
from rag_lab.runs.run_folder import RunFolder
from rag_lab.runs.run_manifest import minutes_text

UNKNOWN = "?"
AT_MOST = "≤"
_WIDTH = 110  # of lines of prose
COST_HEADER = ("stage or metric", "model", "remembered", "to do", "", "tokens read", "written", "USD")
_TITLES = {"calls": "calls", "tokens": "tokens", "cost_usd": "USD"}


def cost_text(bill: CostEstimate, limits: Limits) -> str:
    """Return the work of each stage and metric, the total, and what the numbers rest on."""
    told = (fill(f"- {note}", _WIDTH, subsequent_indent="  ") for note in cost_notes(bill, limits))
    return "\n".join([text_table(COST_HEADER, cost_cells(bill)), *told])


def cost_cells(bill: CostEstimate) -> list[tuple[str, ...]]:
    """Return a row of `COST_HEADER` for each stage and metric, and the total."""
    calls = [row for row in bill.rows if row.calls]
    total = Work(
        "total",
        "",
        "call",
        bill.calls,
        any(row.at_most for row in calls),
        tokens_in=sum(row.tokens_in for row in calls),
        tokens_out=sum(row.tokens_out for row in calls),
        tokens_measured=all(row.tokens_measured for row in calls),
        cost_usd=bill.cost_usd,
    )
    purpose, model, _, *others = _cells(total)
    return [*map(_cells, bill.rows), (purpose, model, "", *others)]


def cost_notes(bill: CostEstimate, limits: Limits) -> list[str]:
    """Return what the numbers of a bill rest on, and which limits they pass."""
    wanted = {"cost_usd": bill.cost_usd, "calls": bill.calls, "minutes": bill.minutes}
    given = {name: getattr(limits, name) for name in wanted}
    stops = [
        f"limits.{name} = {given[name]:g} is less than the {_amount(name, amount)} {_TITLES.get(name, name)} above: "
        "the sweep may stop there, and goes on once the limit is raised."
        for name, amount in wanted.items()
        if given[name] is not None and amount is not None and amount > given[name]
    ]
    return [*_notes(bill), *stops]


def spent_text(run: RunFolder) -> str:
    """Return what was spent beside what was estimated, one line a stage or metric, then the minutes."""
    rows = spending_rows(run)
    columns = [(measure, when) for measure in _TITLES for when in ("estimated", "spent")]
    header = ("stage or metric", *(f"{_TITLES[measure]} {when}" for measure, when in columns))
    cells = [(row["purpose"], *(_amount(m, row[f"{m}_{when}"]) for m, when in columns)) for row in rows]
    return f"{text_table(header, cells)}\n- {minutes_text(rows)}"


def _cells(row: Work) -> tuple[str, ...]:
    remembered = "-" if row.unit == "file" else f"{row.remembered:,}"
    of_calls = ("", "", "")
    if row.unit == "call":
        bound = "" if row.tokens_measured or not row.n else f"{AT_MOST} "
        of_calls = (f"{bound}{row.tokens_in:,}", f"{bound}{row.tokens_out:,}", _amount("cost_usd", row.cost_usd))
    elif row.unit == "score":
        of_calls = (UNKNOWN, UNKNOWN, _amount("cost_usd", row.cost_usd))
    to_do = f"{AT_MOST} {row.n:,}" if row.at_most else f"{row.n:,}"
    unit = row.unit if row.n == 1 else f"{row.unit}s"
    return (row.purpose, row.model, remembered, to_do, unit, *of_calls)


def _amount(measure: str, value: float | None) -> str:
    if value is None:
        return UNKNOWN
    if measure == "cost_usd":
        return f"{value:,.4f}" if 0 < value < 1 else f"{value:,.2f}"
    return f"{value:,.1f}" if measure == "minutes" else f"{value:,}"


def _notes(bill: CostEstimate) -> list[str]:
    notes = []
    if any(row.at_most or (row.calls and not row.tokens_measured) for row in bill.rows):
        notes.append(
            f"{AT_MOST} at most: a stage that waits for another's result is counted as if it needed every call, and "
            "prompts and replies, until a sweep has measured them, as long as the settings let them become."
        )
    notes += [
        f"Thinking: at most {min(row.thinking_tokens, row.tokens_out):,} of the tokens that {row.purpose} writes."
        for row in bill.rows
        if row.thinking_tokens
    ]
    if unknown := ", ".join(row.purpose for row in bill.rows if row.unit == "score"):
        notes.append(f"Nobody knows how often {unknown} asks the judge for a score: say it in its `calls`.")
    notes += [_embedded(row) for row in bill.rows if row.embedded_tokens]
    return [*notes, _minutes(bill), *_prices([row.model for row in bill.rows if row.unit in ("call", "score")])]


def _embedded(row: Work) -> str:
    """Return what embedding costs: beside the table, since neither a limit nor what is spent counts it."""
    found = embedding_price(row.model)
    usd = _amount("cost_usd", found.cost_usd(row.embedded_tokens, 0) if found else None)
    by = f" by {found.table} of {found.checked}" if found else ""
    return (
        f"Embedding by {row.model} reads at most {row.embedded_tokens:,} tokens, {usd} dollars{by}; limits and what is "
        "spent leave that out."
    )


def _minutes(bill: CostEstimate) -> str:
    unmeasured = ", ".join(dict.fromkeys(row.purpose for row in bill.rows if row.minutes is None))
    why = f"; the first sweep measures {unmeasured}" if unmeasured else ""
    return f"Minutes of calls, one after the other: {_amount('minutes', bill.minutes)}{why}. {_on_top(bill.machine)}"


def _on_top(machine: MachineMinutes | None) -> str:
    """Return what a sweep takes beside calls."""
    if machine is None:
        return "Loading, embedding, reranking and notebooks come on top."
    parts = {"embedding": machine.embedding, "notebooks": machine.notebooks, "start, scores and report": machine.report}
    told = ", ".join(f"{name} {_amount('minutes', minutes)}" for name, minutes in parts.items())
    assumed = f"; {listing(machine.assumed)} assumed, until a sweep here has measured it" if machine.assumed else ""
    return (
        f"On top, without jobs side by side, {_amount('minutes', machine.total)}: {told}{assumed}. Loading chat models "
        "and reranking are not counted."
    )


def _prices(models: Sequence[str]) -> list[str]:
    found = {model: price_of(model) for model in dict.fromkeys(models)}
    told = [f"{m} by {known.table} of {known.checked}" for m, known in found.items() if known and known != "free"]
    missing = [model for model, known in found.items() if known is None]
    notes = [f"Prices: {', '.join(told)}; correct them in prices.toml in the home folder."] if told else []
    if missing:
        notes.append(f"No price is known for {', '.join(missing)}; add one to prices.toml in the home folder.")
    return notes
