"""What a sweep is going to cost, estimated before it runs, by rates that earlier sweeps have measured here."""

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
from rag_lab._kit.module_files import modules_from
from rag_lab._kit.whole_file import whole_file
from rag_lab.experiment.forecast.dry_run import dry_run, sweeps_of
from rag_lab.experiment.forecast.work import Work, WorkTree
from rag_lab.experiment.manifest import VariantState, now
from rag_lab.experiment.model_checks import price_of

if TYPE_CHECKING:
    from rag_lab.experiment.plan import Plan

_LOGGER = logging.getLogger(__name__)

RATES_FILE = "rates_3.json"  # the number grows when the format changes
Key = tuple[str, str]  # stage or metric, model


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


EMBEDDING, NOTEBOOKS, REPORT = "embedding", "notebooks", "report"
_CHARS = 1000  # of text, that a rate of embedding is told for
_EMBEDDING_S = 0.08  # for so many characters: a small model of six layers on one core
_VARIANT_S, _QUESTION_S = 3.0, 0.003  # that a notebook takes with a search by words, and a question in it
_RUN_S, _CARD_S = 5.0, 0.002  # that start and report of a sweep take, and a question of one variant in the report
_UNITS = 1000  # of a rate's `n` are what is assumed to take a second


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


def machine_minutes(plan: Plan, work: Iterable[Work], rates: Mapping[Key, Rate]) -> MachineMinutes | None:
    """Return the minutes of a plan with this work to do; None for a race, whose rounds nobody knows before.

    Variants that a run folder holds already are counted as if they ran.
    """
    if plan.rounds:
        return None
    chars: dict[str, int] = {}
    for row in work:
        chars[row.model] = chars.get(row.model, 0) + row.chars_to_embed
    to_embed = {model: n for model, n in chars.items() if n}
    assumed = [] if all((EMBEDDING, model) in rates for model in to_embed) else [EMBEDDING]
    assumed += [part for part in (NOTEBOOKS, REPORT) if (part, "") not in rates]
    measured = {model: rates.get((EMBEDDING, model)) for model in to_embed}
    per_unit_s = {model: rate.seconds / rate.n if rate else _EMBEDDING_S for model, rate in measured.items()}
    n_variants, n_asked = len(plan.variants), len(plan.questions) * plan.experiment.repeats
    return MachineMinutes(
        sum(n / _CHARS * per_unit_s[model] for model, n in to_embed.items()) / 60,
        _expected_s(n_variants, n_asked) * _factor(rates.get((NOTEBOOKS, ""))) / 60,
        _expected_report_s(n_variants, n_asked) * _factor(rates.get((REPORT, ""))) / 60,
        tuple(assumed),
    )


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
    n_variants, n_asked = len(plan.variants), len(plan.questions) * plan.experiment.repeats
    if called or any(state.status != "ok" or state.resumed for state in states):
        return rates
    embedding_s = sum(seconds for _, seconds in embedded.values())
    notebooks_s = max(0.0, sum(state.seconds for state in states) - embedding_s)
    return [
        *rates,
        Rate(NOTEBOOKS, "", round(_expected_s(n_variants, n_asked) * _UNITS), notebooks_s),
        Rate(REPORT, "", round(_expected_report_s(n_variants, n_asked) * _UNITS), report_s),
    ]


def _expected_s(n_variants: int, n_asked: int) -> float:
    return n_variants * (_VARIANT_S + n_asked * _QUESTION_S)


def _expected_report_s(n_variants: int, n_asked: int) -> float:
    return _RUN_S + n_variants * n_asked * _CARD_S


def _factor(rate: Rate | None) -> float:
    """Return how much longer than assumed it took."""
    return 1.0 if rate is None else rate.seconds / rate.n * _UNITS


ASSUMED_S = {"call": 5.0, "score": 5.0, "pair": 1.0}  # of what has not been measured here


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
        return _sum([row.cost_usd for row in self.rows])

    @property
    def minutes(self) -> float | None:
        """Minutes of all calls, one after the other, or None where a rate is missing."""
        return _sum([row.minutes for row in self.rows])


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


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def estimate(plan: Plan, home: Path | None = None, tree: WorkTree | None = None) -> CostEstimate:
    """Return what a sweep of `plan` would do now, a race at most. No model is loaded and no index built.

    Raises:
        ModelError: if a model cannot tell its identity.
        ConfigError: if the user's price table cannot be read, or nothing can be written to the home folder.
    """
    folder = home or home_folder.usable_home()
    rates = read_rates(folder)
    with modules_from(plan.folder):
        foreseen = dry_run(sweeps_of(plan, folder), folder, tree)
    rows = tuple(_billed(work, rates.get((work.purpose, work.model))) for work in foreseen)
    return CostEstimate(rows, now(), machine_minutes(plan, foreseen, rates))


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
