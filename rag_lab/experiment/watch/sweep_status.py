"""How a run stands, from its folder alone: it may run elsewhere, have ended, been stopped, or been killed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from rag_lab.errors import DamagedFile
from rag_lab.experiment.watch.time_left import Left, calls_left, stage_left_s, sweep_left, variant_left
from rag_lab.memory.ledger import Ledger
from rag_lab.rich_display import rich_display
from rag_lab.runs.live_file import LiveEnd, LiveSweep, LiveVariant, read_live_sweep, read_live_variant
from rag_lab.runs.race_record import ROUNDS_FOLDER, read_race
from rag_lab.runs.run_folder import DONE_FILE, LEDGER_FILE, MANIFEST_FILE, RECORD_FILE, RunFolder, read_json

SweepState = Literal["running", "finished", "stopped", "killed", "silent"]
VariantState = Literal["waiting", "running", "ok", "failed", "stopped"]
_SILENT_S = 60.0  # after which a process that cannot be asked counts as silent


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


@rich_display("rag_lab.notebook.views.experiment_view:status_view")
@dataclass(frozen=True, slots=True)
class SweepStatus:
    """How a run stands; `said` is a sentence. `rounds` are those of a race, in order; variants are in the plan's."""

    path: Path
    name: str
    state: SweepState
    said: str
    variants: tuple[VariantStatus, ...]
    left: Left | None = None
    rounds: tuple[SweepStatus, ...] = ()

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
    """Return how the run in `path` stands. Nothing is written.

    Raises:
        RagLabError: if it is no run folder.
    """
    run, now = RunFolder.open(path), time.time()
    plans = (run.path / ROUNDS_FOLDER).glob("*/plan.json")
    folders = sorted((path.parent for path in plans), key=lambda path: (len(path.name), path.name))
    rounds = tuple(map(sweep_status, folders))
    live = read_live_sweep(run.path)
    try:
        variants = _variants(run, live, now)
        state, said = _state(run, live, rounds, now)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DamagedFile(run.path / MANIFEST_FILE, "it, or a record, does not say how variants ended") from None
    running = [one.left for one in variants if one.state == "running"]
    n_waiting = sum(one.state == "waiting" for one in variants)
    left = None
    if state == "running" and live is not None and live.step in ("plan", "check", "variants"):
        left = sweep_left(running, n_waiting, live.jobs, _ended_s(live), (calls_left(run)[1] or None))
    return SweepStatus(run.path, run.name, state, said, variants, left, rounds)


def _state(
    run: RunFolder, live: LiveSweep | None, rounds: tuple[SweepStatus, ...], now: float
) -> tuple[SweepState, str]:
    """Return how the sweep stands; a race runs, or was killed, where its last round does or was."""
    if live is not None:
        found = _of_live(live, now)
        if found[0] != "killed" or not (run.path / MANIFEST_FILE).is_file():
            return found
    if (run.path / MANIFEST_FILE).is_file():
        stopped = [one for one in run.manifest().get("variants", {}).values() if one["status"] == "stopped"]
        if stopped:
            return "stopped", f"{str(stopped[0]['reason']).capitalize().rstrip('.')}."
        return "finished", "It has ended."
    if rounds and rounds[-1].state in ("running", "killed", "silent"):
        return rounds[-1].state, f"Round {rounds[-1].path.name}: {rounds[-1].said}"
    race = _race_stopped(run.path)
    return "stopped", race or "It is not running, and not at its end: start the same command again and it goes on."


def _race_stopped(run: Path) -> str:
    try:
        race = read_race(run)
    except DamagedFile as error:
        return str(error)
    return race.stopped if race else ""


def _of_live(live: LiveSweep, now: float) -> tuple[SweepState, str]:
    """Return how a sweep stands that has not said its end."""
    runs, silent_s = live.process.runs(), now - live.seen
    step = {"plan": "plans", "check": "checks its variants", "variants": "runs", "report": "makes its report"}
    if runs or (runs is None and silent_s < _SILENT_S):
        return (
            "running",
            f"It {step.get(live.step, 'runs')}, by {live.process}, since {(now - live.began) / 60:.1f} min.",
        )
    if runs is None:
        return (
            "silent",
            f"{live.process} has said nothing for {silent_s / 60:.0f} min, by this machine's clock, and cannot be "
            "asked from here: if it is gone, start the same command again and it goes on.",
        )
    return (
        "killed",
        f"It is not running any more: {live.process} ended without a word. Start the same command again and it goes "
        "on.",
    )


def _variants(run: RunFolder, live: LiveSweep | None, now: float) -> tuple[VariantStatus, ...]:
    calls = _calls(run)
    ended = dict(live.ended) if live else {}
    manifest = {} if live else run.manifest().get("variants", {})
    ended |= {v: LiveEnd(str(m["status"]), str(m["reason"]), float(m["seconds"])) for v, m in manifest.items()}
    running = live.running if live else {}
    found = []
    for plan in run.variants:
        v = plan.variant_id
        n, cost_usd = calls.get(v, (0, 0.0))
        folder = run.variant_dir(v)
        if v in running:
            one = _running(v, read_live_variant(folder), _ended_s(live), now - running[v])
        else:
            one = _ended(run, v, ended.get(v))
        found.append(replace(one, calls=n, cost_usd=cost_usd))
    return tuple(found)


def _calls(run: RunFolder) -> dict[str, tuple[int, float]]:
    """Return the number and the dollars of calls by variant."""
    found: dict[str, tuple[int, float]] = {}
    for caller, n, made in Ledger(run.path / LEDGER_FILE).calls():
        before, cost_usd = found.get(caller.payer, (0, 0.0))
        found[caller.payer] = (before + n, cost_usd + made.cost_usd)
    return found


def _running(variant_id: str, live: LiveVariant | None, ended_s: list[float], elapsed_s: float) -> VariantStatus:
    elapsed_s = max(0.0, elapsed_s)
    if live is None:
        left = variant_left(elapsed_s, None, ended_s)
        return VariantStatus(variant_id, "running", "starts", seconds=elapsed_s, left=left)
    stage_s = stage_left_s(live.done, live.total, live.known, time.time() - live.stage_began)
    return VariantStatus(
        variant_id,
        "running",
        live.stage,
        live.done,
        live.total,
        live.remembered,
        live.computed,
        failed=live.failed,
        fell_back=live.fell_back,
        reason=live.reason,
        seconds=elapsed_s,
        left=variant_left(elapsed_s, stage_s, ended_s),
    )


def _ended(run: RunFolder, variant_id: str, end: LiveEnd | None) -> VariantStatus:
    folder = run.variant_dir(variant_id)
    is_whole = (folder / DONE_FILE).is_file()
    if end is None and not is_whole:
        return VariantStatus(variant_id, "waiting")
    record = _record(folder / RECORD_FILE)
    results = record.get("results", {})
    state: VariantState = "ok" if is_whole or end is None else cast(VariantState, end.status)
    return VariantStatus(
        variant_id,
        state,
        remembered=results.get("remembered"),
        computed=results.get("computed"),
        failed=sum(record.get("failed_stages", {}).values()),
        reason=end.reason if end else "",
        seconds=end.seconds if end else float(_record(folder / DONE_FILE).get("seconds", 0.0)),
    )


def _record(path: Path) -> Mapping[str, Any]:
    try:
        return read_json(path) if path.is_file() else {}
    except DamagedFile:
        return {}  # the sweep says so and runs the variant again


def _ended_s(live: LiveSweep | None) -> list[float]:
    return [end.seconds for end in live.ended.values() if end.status == "ok"] if live else []


# what needs no call takes time, too
