"""What a sweep is going to cost, estimated before it runs by rates that earlier sweeps measured here, and as text."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from filelock import FileLock
from pydantic import Field, TypeAdapter, ValidationError

from rag_lab._kit import home as home_folder
from rag_lab._kit.digest import whole_file
from rag_lab._kit.registry import modules_from
from rag_lab._kit.wording import listing
from rag_lab.experiment.config import Limits
from rag_lab.experiment.forecast.dry_run import dry_run, sweeps_of
from rag_lab.experiment.forecast.work import Work, WorkTree
from rag_lab.experiment.manifest import VariantState, now
from rag_lab.experiment.stage_identities import embedding_price, price_of
from rag_lab.report.table import Table

if TYPE_CHECKING:
    from rag_lab.experiment.plan import Plan

_LOGGER = logging.getLogger(__name__)

RATES_FILE = "rates_3.json"  # the number grows when the format changes
Key = tuple[str, str]  # stage or metric, model
EMBEDDING, NOTEBOOKS, REPORT = "embedding", "notebooks", "report"
_CHARS = 1000  # of text, that a rate of embedding is told for
_EMBEDDING_S = 0.08  # for so many characters: a small model of six layers on one core
_UNITS = 1000  # of the `n` of the other rates are what is assumed to take a second
ASSUMED_S = {"call": 5.0, "score": 5.0, "pair": 1.0}  # of what has not been measured here
UNKNOWN = "?"
AT_MOST = "≤"
_HEADER = ("stage or metric", "model", "remembered", "to do", "", "tokens read", "written", "USD")
TITLES = {"calls": "calls", "tokens": "tokens", "cost_usd": "USD"}


@dataclass(frozen=True, slots=True)
class Rate:
    """Sums over `n` calls for one stage or metric."""

    purpose: str
    model: str
    n: Annotated[int, Field(ge=1)]
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    tokens_in: int = 0
    tokens_out: int = 0


_FILE = TypeAdapter(list[Rate])


def read_rates(home: Path) -> dict[Key, Rate]:
    """Return what was measured; nothing where the file is missing or broken."""
    path = home / RATES_FILE
    try:
        rates = _FILE.validate_json(path.read_bytes()) if path.is_file() else []
    except ValidationError:
        _LOGGER.warning("%s cannot be read: rates are measured anew.", path)
        rates = []
    return {(rate.purpose, rate.model): rate for rate in rates}


def keep_rates(home: Path, measured: Iterable[Rate]) -> None:
    """Keep what a sweep has measured, in place of what was known of the same; sweeps may do so at the same time."""
    path = home / RATES_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        known = read_rates(home) | {(rate.purpose, rate.model): rate for rate in measured}
        with whole_file(path) as partial:
            partial.write_bytes(_FILE.dump_json(list(known.values()), indent=1))


@dataclass(frozen=True, slots=True)
class MachineMinutes:
    """Minutes of one variant after the other; `assumed` names what no sweep has measured here."""

    embedding: float
    notebooks: float
    report: float
    assumed: tuple[str, ...]

    @property
    def total(self) -> float:
        """All of them."""
        return self.embedding + self.notebooks + self.report


def _assumed_s(plan: Plan) -> dict[str, float]:
    """Return what notebooks take that search by words, and what start and report of a sweep do, until measured."""
    n_variants, n_asked = len(plan.variants), len(plan.questions) * plan.experiment.repeats
    return {NOTEBOOKS: n_variants * (3.0 + n_asked * 0.003), REPORT: 5.0 + n_variants * n_asked * 0.002}


def machine_minutes(plan: Plan, work: Iterable[Work], rates: Mapping[Key, Rate]) -> MachineMinutes | None:
    """Return the minutes of a plan with this work to do; None for a race, whose rounds nobody knows before.

    Variants that a run folder holds already are counted as if they ran.
    """
    if plan.rounds:
        return None
    seconds, assumed = {EMBEDDING: 0.0}, []
    for row in work:
        if row.chars_to_embed:
            rate = rates.get((EMBEDDING, row.model))
            seconds[EMBEDDING] += row.chars_to_embed / _CHARS * (rate.seconds / rate.n if rate else _EMBEDDING_S)
            assumed += [] if rate else [EMBEDDING]
    for part, expected_s in _assumed_s(plan).items():
        rate = rates.get((part, ""))
        seconds[part] = expected_s * (rate.seconds / rate.n * _UNITS if rate else 1.0)
        assumed += [] if rate else [part]
    embedding, notebooks, report = (part_s / 60 for part_s in seconds.values())
    return MachineMinutes(embedding, notebooks, report, tuple(dict.fromkeys(assumed)))


def machine_rates(plan: Plan, states: Sequence[VariantState], report_s: float, *, called: bool) -> list[Rate]:
    """Return what a sweep has measured; its notebooks where all ran now, and none waited for a chat model.

    `report_s` are the seconds of its start, scores and report; `called`: a variant asked a chat model.
    """
    embedded: dict[str, tuple[int, float]] = {}
    for state in states:
        made = (state.record or {}).get("embedded") if not state.resumed else None
        if made:
            chars, seconds = embedded.get(made["model"], (0, 0.0))
            embedded[made["model"]] = (chars + int(made["chars"]), seconds + float(made["seconds"]))
    rates = [
        Rate(EMBEDDING, model, chars // _CHARS, seconds)
        for model, (chars, seconds) in embedded.items()
        if chars >= 50 * _CHARS  # of less, loading the model is most
    ]
    if called or any(state.status != "ok" or state.resumed for state in states):
        return rates
    notebooks_s = sum(state.seconds for state in states) - sum(seconds for _, seconds in embedded.values())
    measured_s = {NOTEBOOKS: max(0.0, notebooks_s), REPORT: report_s}
    expected = _assumed_s(plan).items()
    return [*rates, *(Rate(part, "", round(expected_s * _UNITS), measured_s[part]) for part, expected_s in expected)]


@dataclass(frozen=True, slots=True)
class CostEstimate:
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
        known = [row.cost_usd for row in self.rows if row.cost_usd is not None]
        return sum(known) if len(known) == len(self.rows) else None

    @property
    def minutes(self) -> float | None:
        """Minutes of all calls, one after the other, or None where a rate is missing."""
        known = [row.minutes for row in self.rows if row.minutes is not None]
        return sum(known) if len(known) == len(self.rows) else None


def minutes_ahead(bill: CostEstimate) -> tuple[float, list[str]]:
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


def estimate(plan: Plan, home: Path | None = None, tree: WorkTree | None = None) -> CostEstimate:
    """Return what a sweep of `plan` would do now, a race at most. No model is loaded and no index built."""
    folder = home or home_folder.usable_home()
    rates = read_rates(folder)
    with modules_from(plan.folder):
        foreseen = dry_run(sweeps_of(plan, folder), folder, tree)
    rows = tuple(_billed(work, rates.get((work.purpose, work.model))) for work in foreseen)
    return CostEstimate(rows, now(), machine_minutes(plan, foreseen, rates))


def _billed(work: Work, rate: Rate | None) -> Work:
    """Return `work` with its dollars and minutes, and with the tokens of earlier calls where there were any."""
    price = price_of(work.model) if work.calls or work.unit == "score" else "free"
    if work.unit == "score":
        return replace(work, cost_usd=0.0 if price == "free" else None)
    if not work.calls:
        return work
    # Earlier calls may not have thought, and these may: then those replies fit without a thought, and say nothing.
    reply_tokens = (work.tokens_out - work.thinking_tokens) / work.n
    if rate is None or (work.thinking_tokens > 0 and rate.tokens_out / rate.n <= reply_tokens):
        work = replace(work, minutes=None)
    else:
        share = work.n / rate.n
        work = replace(
            work,
            tokens_in=min(round(rate.tokens_in * share), work.tokens_in),
            tokens_out=min(round(rate.tokens_out * share), work.tokens_out),
            tokens_measured=True,
            minutes=rate.seconds * share / 60,
        )
    if price is None or price == "free":
        return replace(work, cost_usd=None if price is None else 0.0)
    return replace(work, cost_usd=price.cost_usd(work.tokens_in, work.tokens_out, work.calls))


def cost_table(bill: CostEstimate) -> Table:
    """Return a row for each stage and metric, and the total."""
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
    rows = (*map(_cells, bill.rows), (purpose, model, "", *others))
    return Table("What is left to do, counted once where variants share it", _HEADER, rows, 2)


def cost_notes(bill: CostEstimate, limits: Limits) -> list[str]:
    """Return what the numbers of a bill rest on, and which limits they pass."""
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
    for row in bill.rows:
        if row.embedded_tokens:  # beside the table, since neither a limit nor what is spent counts it
            price = embedding_price(row.model)
            usd = amount_text("cost_usd", price.cost_usd(row.embedded_tokens, 0) if price else None)
            by = f" by {price.table} of {price.checked}" if price else ""
            notes.append(
                f"Embedding by {row.model} reads at most {row.embedded_tokens:,} tokens, {usd} dollars{by}; limits and "
                "what is spent leave that out."
            )
    unmeasured = ", ".join(dict.fromkeys(row.purpose for row in bill.rows if row.minutes is None))
    on_top = "Loading, embedding, reranking and notebooks come on top."
    if machine := bill.machine:
        parts = {"embedding": machine.embedding, "notebooks": machine.notebooks}
        parts |= {"start, scores and report": machine.report, "total": machine.total}
        *shares, total = (amount_text("minutes", minutes) for minutes in parts.values())
        named = ", ".join(f"{name} {share}" for name, share in zip(parts, shares, strict=False))
        assumed = f"; {listing(machine.assumed)} assumed, until a sweep here has measured it" if machine.assumed else ""
        on_top = (
            f"On top, without jobs side by side, {total}: {named}{assumed}. Loading chat models and reranking are not "
            "counted."
        )
    if unmeasured:
        notes.append(f"How long model calls take is not known; the first sweep measures {unmeasured}. {on_top}")
    else:
        notes.append(f"Model calls take {amount_text('minutes', bill.minutes)} minutes, one after the other. {on_top}")
    prices = {row.model: price_of(row.model) for row in bill.rows if row.unit in ("call", "score")}
    found = [f"{m} by {known.table} of {known.checked}" for m, known in prices.items() if known and known != "free"]
    if found:
        notes.append(f"Prices: {', '.join(found)}; correct them in prices.toml in the home folder.")
    if missing := [model for model, known in prices.items() if known is None]:
        notes.append(f"No price is known for {', '.join(missing)}; add one to prices.toml in the home folder.")
    for name, amount in {"cost_usd": bill.cost_usd, "calls": bill.calls, "minutes": bill.minutes}.items():
        limit = getattr(limits, name)
        if limit is not None and amount is not None and amount > limit:
            wanted = f"{amount_text(name, amount)} {TITLES.get(name, name)}"
            notes.append(
                f"limits.{name} = {limit:g} is less than the {wanted} above: the sweep may stop there, and goes on "
                "once the limit is raised."
            )
    return notes


def _cells(row: Work) -> tuple[str, ...]:
    remembered = "-" if row.unit == "file" else f"{row.remembered:,}"
    of_calls = ("", "", "")
    if row.unit == "call":
        bound = "" if row.tokens_measured or not row.n else f"{AT_MOST} "
        of_calls = (f"{bound}{row.tokens_in:,}", f"{bound}{row.tokens_out:,}", amount_text("cost_usd", row.cost_usd))
    elif row.unit == "score":
        of_calls = (UNKNOWN, UNKNOWN, amount_text("cost_usd", row.cost_usd))
    to_do = f"{AT_MOST} {row.n:,}" if row.at_most else f"{row.n:,}"
    unit = row.unit if row.n == 1 else f"{row.unit}s"
    return (row.purpose, row.model, remembered, to_do, unit, *of_calls)


def amount_text(measure: str, value: float | None) -> str:
    """Return a number of a bill with the digits that its measure has."""
    if value is None:
        return UNKNOWN
    if measure == "cost_usd":
        return f"{value:,.4f}" if 0 < value < 1 else f"{value:,.2f}"
    return f"{value:,.1f}" if measure == "minutes" else f"{value:,}"
