"""How a run stands, from its folder alone: it may run elsewhere, have ended, been stopped, or been killed.

Time left is a range: by what variants took in this start; before one has ended, by the estimate of calls. Nothing is
written.
"""

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from rag_lab.errors import DamagedFile
from rag_lab.experiment.forecast.cost_estimate import spending_rows
from rag_lab.memory.ledger import Ledger
from rag_lab.rich_display import rich_display
from rag_lab.runs.run_folder import DONE_FILE, LEDGER_FILE, MANIFEST_FILE, RECORD_FILE, RunFolder, read_json
from rag_lab.runs.run_manifest import ROUNDS_FOLDER, read_race
from rag_lab.runs.variant_files import LiveEnd, LiveSweep, LiveVariant, read_live

SweepState = Literal["running", "finished", "stopped", "killed", "silent"]
VariantState = Literal["waiting", "running", "ok", "failed", "stopped"]
_SILENT_S = 60.0  # after which a process that cannot be asked counts as silent
_FACTOR = 2.0  # by which minutes may differ from an estimate, or from those of one variant
_STEPS = {"plan": "plans", "check": "checks its variants", "variants": "runs", "report": "makes its report"}


@dataclass(frozen=True, slots=True)
class Left:
    """Seconds left: at least, and at most; None where the most is not known."""

    least_s: float
    most_s: float | None

    def text(self) -> str:
        """Write it in minutes."""
        both = (self.least_s, self.most_s or 0.0)
        least, most = (f"{one / 60:.1f} min" if one < 600 else f"{one / 60:.0f} min" for one in both)
        if self.most_s is None:
            return f"≥ {least}"
        return least if least == most else f"{least} to {most}"


def stage_left_s(done: int, total: int | None, known: int, elapsed_s: float) -> float | None:
    """Return the seconds left in a stage by its pace, `elapsed_s` after its begin; None before anything was computed.

    `known` of those `done` were there when it began; `total` is None where nothing is counted.
    """
    new = done - known
    return None if total is None or new <= 0 else (total - done) * elapsed_s / new


def variant_left(elapsed_s: float, stage_s: float | None, ended_s: Sequence[float]) -> Left | None:
    """Return the time left of a variant that runs since `elapsed_s`; None where nothing is known.

    `stage_s` is left in its stage. The quickest and the slowest of `ended_s`, variants that have ended in this start,
    are the ends of the range, as they may share work; of a single one half and double. One that takes longer than that
    has no upper end.
    """
    if len(ended_s) == 1:
        ended_s = (ended_s[0] / _FACTOR, ended_s[0] * _FACTOR)
    least_s = stage_s or 0.0
    if not ended_s:
        return None if stage_s is None else Left(least_s, None)
    low_s, high_s = max(least_s, min(ended_s) - elapsed_s), max(ended_s) - elapsed_s
    return Left(max(low_s, 0.0), None if high_s < low_s or high_s < 0 else high_s)


def sweep_left(
    running: Sequence[Left | None], n_waiting: int, jobs: int, ended_s: Sequence[float], bill_s: float | None
) -> Left | None:
    """Return the time left of a sweep with `jobs` variants at a time; None where nothing is known.

    `running` is what is left of each variant that runs. `bill_s` are the seconds of the calls that are estimated to be
    left, one after the other; None where nobody knows.
    """
    if len(ended_s) == 1:
        ended_s = (ended_s[0] / _FACTOR, ended_s[0] * _FACTOR)
    lasts = [one.least_s for one in running if one is not None]
    longest_s = max(lasts, default=0.0)
    if not ended_s:
        if bill_s is None:
            return Left(longest_s, None) if longest_s else None
        side_by_side = max(1, min(jobs, len(running) + n_waiting))
        return Left(max(longest_s, bill_s / side_by_side / _FACTOR), max(longest_s, bill_s * _FACTOR))
    least_s = max(longest_s, (math.fsum(lasts) + n_waiting * min(ended_s)) / jobs)
    if any(one is None or one.most_s is None for one in running):
        return Left(least_s, None)
    mosts = [one.most_s for one in running if one is not None and one.most_s is not None]
    work_s = math.fsum(mosts) + n_waiting * max(ended_s)
    end_s = max(ended_s) if n_waiting else max(mosts, default=0.0)  # the one that ends last may begin last
    return Left(least_s, max(least_s, min(work_s, work_s / jobs + end_s)))


def calls_left(run: RunFolder) -> tuple[int, float | None]:
    """Return the calls that were estimated and not made yet, and their seconds, one after the other.

    Seconds go by the calls that were made, else by the bill; they are None where neither knows.
    """
    try:
        rows = spending_rows(run)
    except DamagedFile:
        return 0, None
    n_left, left_s, is_known = 0, 0.0, True
    for row in rows:
        n = max(0, (row["calls_estimated"] or 0) - row["calls_spent"])
        known = [(row[f"minutes_{when}"], row[f"calls_{when}"]) for when in ("spent", "estimated")]
        minutes_a_call = [minutes / calls for minutes, calls in known if calls and minutes is not None]
        n_left += n
        is_known = is_known and (not n or bool(minutes_a_call))
        left_s += n * 60.0 * minutes_a_call[0] if n and minutes_a_call else 0.0
    return n_left, left_s if is_known else None


@dataclass(frozen=True, slots=True)
class VariantStatus:
    """How a variant stands. `done` of `total` questions have passed `stage`, where it runs.

    `remembered` and `computed` count results of its costly stages, None where it did not say; `calls` and `cost_usd`
    are of chat models, all starts together; `seconds` it has run, or ran; `left` is None where nothing is known.
    """

    variant_id: str
    state: VariantState
    stage: str = ""
    done: int = 0
    total: int | None = None
    remembered: int | None = None
    computed: int | None = None
    calls: int = 0
    cost_usd: float = 0.0
    failed: int = 0
    fell_back: int = 0
    reason: str = ""
    seconds: float = 0.0
    left: Left | None = None


@rich_display("rag_lab.notebook.views.pipeline_view:status_view")
@dataclass(frozen=True, slots=True)
class SweepStatus:
    """How a run stands; `said` is a sentence. `rounds` are those of a race, in order; variants are in the plan's."""

    path: Path
    name: str
    state: SweepState
    said: str
    variants: tuple[VariantStatus, ...]
    left: Left | None = None
    rounds: "tuple[SweepStatus, ...]" = ()

    @property
    def calls(self) -> int:
        """Calls of chat models, of a race's rounds, too."""
        return sum(one.calls for one in self.variants) + sum(one.calls for one in self.rounds)

    @property
    def cost_usd(self) -> float:
        """Dollars of these calls."""
        return sum(one.cost_usd for one in self.variants) + sum(one.cost_usd for one in self.rounds)

    @property
    def is_well(self) -> bool:
        """Whether it runs or has ended, and no variant or question has failed so far."""
        failed = any(one.failed or one.state in ("failed", "stopped") for one in self.variants)
        return self.state in ("running", "finished") and not failed and all(one.is_well for one in self.rounds)


def sweep_status(path: Path | str) -> SweepStatus:
    """Return how the run in `path` stands. Nothing is written."""
    run, now = RunFolder.open(path), time.time()
    folders = [path.parent for path in (run.path / ROUNDS_FOLDER).glob("*/plan.json")]
    rounds = tuple(map(sweep_status, sorted(folders, key=lambda path: (len(path.name), path.name))))
    live = read_live(run.path, LiveSweep)
    ended_s = [end.seconds for end in live.ended.values() if end.status == "ok"] if live else []
    try:
        variants = _variants(run, live, ended_s, now)
        state, said = _state(run, live, rounds, now)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DamagedFile(run.path / MANIFEST_FILE, "it, or a record, does not say how variants ended") from None
    left, running = None, [one.left for one in variants if one.state == "running"]
    n_waiting = sum(one.state == "waiting" for one in variants)
    if state == "running" and live is not None and live.step in ("plan", "check", "variants"):
        left = sweep_left(running, n_waiting, live.jobs, ended_s, (calls_left(run)[1] or None))
    return SweepStatus(run.path, run.name, state, said, variants, left, rounds)


def _state(
    run: RunFolder, live: LiveSweep | None, rounds: tuple[SweepStatus, ...], now: float
) -> tuple[SweepState, str]:
    """Return how the sweep stands; a race runs, or was killed, where its last round does or was."""
    is_ended = (run.path / MANIFEST_FILE).is_file()
    if live is not None:  # it has not said its end
        runs, silent_s = live.process.runs(), now - live.seen
        if runs or (runs is None and silent_s < _SILENT_S):
            since = f"since {(now - live.began) / 60:.1f} min"
            return "running", f"It {_STEPS.get(live.step, 'runs')}, by {live.process}, {since}."
        if runs is None:
            silent = f"{live.process} has said nothing for {silent_s / 60:.0f} min, by this machine's clock, and"
            cure = "if it is gone, start the same command again and it goes on."
            return "silent", f"{silent} cannot be asked from here: {cure}"
        if not is_ended:
            gone = f"It is not running any more: {live.process} ended without a word."
            return "killed", f"{gone} Start the same command again and it goes on."
    if is_ended:
        for one in run.manifest().get("variants", {}).values():
            if one["status"] == "stopped":
                return "stopped", f"{str(one['reason']).capitalize().rstrip('.')}."
        return "finished", "It has ended."
    if rounds and rounds[-1].state in ("running", "killed", "silent"):
        return rounds[-1].state, f"Round {rounds[-1].path.name}: {rounds[-1].said}"
    try:
        race = read_race(run.path)
        reason = race.stopped if race else ""
    except DamagedFile as error:
        reason = str(error)
    return "stopped", reason or "It is not running, and not at its end: start the same command again and it goes on."


def _variants(
    run: RunFolder, live: LiveSweep | None, ended_s: Sequence[float], now: float
) -> tuple[VariantStatus, ...]:
    by_variant = Ledger(run.path / LEDGER_FILE).calls(["payer"])
    calls = {caller.payer: (n, made.cost_usd) for caller, n, made in by_variant}
    ended = dict(live.ended) if live else {}
    manifest = {} if live else run.manifest().get("variants", {})
    ended |= {v: LiveEnd(str(m["status"]), str(m["reason"]), float(m["seconds"])) for v, m in manifest.items()}
    running = live.running if live else {}
    found = []
    for v in (plan.variant_id for plan in run.variants):
        n, cost_usd = calls.get(v, (0, 0.0))
        if v not in running:
            found.append(replace(_ended(run, v, ended.get(v)), calls=n, cost_usd=cost_usd))
            continue
        elapsed_s, stage_s = max(0.0, now - running[v]), None
        one = VariantStatus(v, "running", "starts", seconds=elapsed_s)
        if at := read_live(run.variant_dir(v), LiveVariant):
            stage_s = stage_left_s(at.done, at.total, at.known, time.time() - at.stage_began)
            one = replace(one, stage=at.stage, done=at.done, total=at.total, remembered=at.remembered)
            one = replace(one, computed=at.computed, failed=at.failed, fell_back=at.fell_back, reason=at.reason)
        one = replace(one, left=variant_left(elapsed_s, stage_s, ended_s))
        found.append(replace(one, calls=n, cost_usd=cost_usd))
    return tuple(found)


def _ended(run: RunFolder, variant_id: str, end: LiveEnd | None) -> VariantStatus:
    folder = run.variant_dir(variant_id)
    is_whole = (folder / DONE_FILE).is_file()
    if end is None and not is_whole:
        return VariantStatus(variant_id, "waiting")
    record, done = {}, {}
    with suppress(FileNotFoundError, DamagedFile):  # of a damaged one the sweep says so and runs the variant again
        record = read_json(folder / RECORD_FILE)
    with suppress(FileNotFoundError, DamagedFile):
        done = read_json(folder / DONE_FILE)
    results: Mapping[str, Any] = record.get("results", {})
    state: VariantState = "ok" if is_whole or end is None else cast(VariantState, end.status)
    return VariantStatus(
        variant_id,
        state,
        remembered=results.get("remembered"),
        computed=results.get("computed"),
        failed=sum(record.get("failed_stages", {}).values()),
        reason=end.reason if end else "",
        seconds=end.seconds if end else float(done.get("seconds", 0.0)),
    )
