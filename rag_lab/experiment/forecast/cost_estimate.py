"""What a sweep is going to cost, estimated before it runs by rates that earlier sweeps measured here, and as text."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from filelock import FileLock
from pydantic import Field, ValidationError

from rag_lab._kit import home as home_folder
from rag_lab._kit.digest import whole_file
from rag_lab._kit.registry import modules_from
from rag_lab._kit.section import adapter_of
from rag_lab._kit.wording import text_table
from rag_lab.errors import DamagedFile
from rag_lab.experiment.forecast.dry_run import dry_run, sweeps_of
from rag_lab.experiment.forecast.work import PlanTree, Work
from rag_lab.experiment.manifest import VariantState, now
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.stage_identities import price_of
from rag_lab.memory.ledger import Ledger
from rag_lab.runs.run_folder import BILL_FILE, LEDGER_FILE, RunFolder, read_record
from rag_lab.runs.run_manifest import MEASURES, add, minutes_text, of_calls

_LOGGER = logging.getLogger(__name__)

RATES_FILE = "rates_3.json"  # the number grows when the format changes
Key = tuple[str, str]  # stage or metric, model
EMBEDDING, NOTEBOOKS, REPORT = "embedding", "notebooks", "report"
_CHARS = 1000  # of text, that a rate of embedding is told for
_EMBEDDING_S = 0.08  # for so many characters: a small model of six layers on one core
_UNITS = 1000  # of the `n` of the other rates are what is assumed to take a second
ASSUMED_S = {"call": 5.0, "score": 5.0, "pair": 1.0, "vector pair": 0.02}  # of what has not been measured here
UNKNOWN = "?"
_NO_BILL = "it holds no bill"
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


def read_rates(home: Path) -> dict[Key, Rate]:
    """Return what was measured; nothing where the file is missing or broken."""
    path = home / RATES_FILE
    try:
        rates: list[Rate] = adapter_of(list[Rate]).validate_json(path.read_bytes()) if path.is_file() else []
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
            partial.write_bytes(adapter_of(list[Rate]).dump_json(list(known.values()), indent=1))


@dataclass(frozen=True, slots=True)
class MachineMinutes:
    """Minutes of one variant after the other; `assumed` names what no sweep has measured here."""

    embedding: float
    notebooks: float
    report: float
    assumed: tuple[str, ...]


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
    for made in ((state.record or {}).get("embedded") for state in states if not state.resumed):
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
    machine, assumed = bill.machine, list[str]()
    minutes = machine.embedding + machine.notebooks + machine.report if machine else 0.0
    for row in bill.rows:
        minutes += row.minutes or 0.0
        if row.n and row.unit in ASSUMED_S and (row.unit != "call" or row.minutes is None):
            minutes += row.n * ASSUMED_S[row.unit] / 60
            assumed.append(f"{row.purpose}: {row.n:,} {row.unit}s, {ASSUMED_S[row.unit]:g} s each assumed")
    return minutes, assumed


def estimate(plan: Plan, home: Path | None = None, tree: PlanTree | None = None) -> CostEstimate:
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
        work = replace(work, tokens_measured=True, minutes=rate.seconds * share / 60)
        tokens_in, tokens_out = (round(n * share) for n in (rate.tokens_in, rate.tokens_out))
        work = replace(work, tokens_in=min(tokens_in, work.tokens_in), tokens_out=min(tokens_out, work.tokens_out))
    if price is None or price == "free":
        return replace(work, cost_usd=None if price is None else 0.0)
    return replace(work, cost_usd=price.cost_usd(work.tokens_in, work.tokens_out, work.calls))


def amount_text(measure: str, value: float | None) -> str:
    """Return a number of a bill with the digits that its measure has."""
    if value is None:
        return UNKNOWN
    if measure == "cost_usd":
        return f"{value:,.4f}" if 0 < value < 1 else f"{value:,.2f}"
    return f"{value:,.1f}" if measure == "minutes" else f"{value:,}"


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
    return [
        Spent(caller.purpose, n, made.tokens_in + made.tokens_out, made.cost_usd, made.seconds / 60)
        for caller, n, made in Ledger(run.path / LEDGER_FILE).calls(["purpose"])
    ]


def measured_rates(run: RunFolder) -> list[Rate]:
    """Return the rates of the answered calls of all starts of a sweep, by purpose and model, whoever paid."""
    calls = Ledger(run.path / LEDGER_FILE).calls(["purpose", "model"], answered=True)
    return [Rate(who.purpose, who.model, n, made.seconds, made.tokens_in, made.tokens_out) for who, n, made in calls]


@dataclass(frozen=True, slots=True)
class KeptEstimate:
    """The estimate of the first start of a plan; `before` is what earlier plans in the same run folder had spent."""

    plan: str
    bill: CostEstimate
    before: tuple[Spent, ...]


def kept_estimate(run: RunFolder, plan: str, make: Callable[[], CostEstimate]) -> KeptEstimate:
    """Return the estimate that the run folder keeps of the same plan (told by its digest), or make one."""
    try:
        kept = read_record(run.path / BILL_FILE, KeptEstimate, _NO_BILL)
    except DamagedFile as error:
        _LOGGER.warning("%s: what is left to do is estimated anew.", error.what)
        kept = None
    return kept if kept and kept.plan == plan else KeptEstimate(plan, make(), tuple(spent(run)))


def spending_rows(run: RunFolder) -> list[Mapping[str, Any]]:
    """Return one mapping with the keys `COLUMNS` for each stage or metric that calls; None where none was estimated."""
    kept = read_record(run.path / BILL_FILE, KeptEstimate, _NO_BILL)
    actual, estimated = {row.purpose: row for row in spent(run)}, dict[str, dict[str, Any]]()
    expected: list[Work | Spent] = [*kept.bill.rows, *kept.before] if kept else []
    for row in expected:
        sums = estimated.setdefault(row.purpose, dict.fromkeys(MEASURES, 0))
        add(sums, {measure: getattr(row, measure) for measure in MEASURES})
    nothing = dict.fromkeys(MEASURES, None if kept is None else 0)
    rows = []
    for purpose in dict.fromkeys([*estimated, *actual]):
        both = {"estimated": estimated.get(purpose, nothing), "spent": asdict(actual.get(purpose, Spent(purpose)))}
        rows.append({"purpose": purpose} | {f"{m}_{when}": one[m] for m in MEASURES for when, one in both.items()})
    return of_calls(rows)


def spent_text(run: RunFolder) -> str:
    """Return what was spent beside what was estimated, one line a stage or metric, then the minutes."""
    rows = spending_rows(run)
    columns = [(measure, when) for measure in TITLES for when in ("estimated", "spent")]
    header = ("stage or metric", *(f"{TITLES[measure]} {when}" for measure, when in columns))
    cells = [(row["purpose"], *(amount_text(m, row[f"{m}_{when}"]) for m, when in columns)) for row in rows]
    return f"{text_table(header, cells)}\n- {minutes_text(rows)}"
