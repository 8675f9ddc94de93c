"""A race at work: each round a sweep in a folder of its own, then the proof; what is decided is read from scores alone.

Whatever ends it, another start decides every round anew: what was computed is remembered, and rounds that are whole are
kept, so that goes fast, and what another attempt has cured counts.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab._kit.wording import counted
from rag_lab.errors import DamagedFile
from rag_lab.experiment.checkout import NOTEBOOK, checkout_file
from rag_lab.experiment.forecast.estimate import estimate
from rag_lab.experiment.identity import run_identities
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.race.drop import closest_call, standings
from rag_lab.experiment.race.rounds import deciding_metric, full_plan, kept_after_rounds, proof_plan, round_plan
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.run_variants import run_variants
from rag_lab.experiment.run.start_sweep import begin_race
from rag_lab.experiment.run.sweep_progress import say
from rag_lab.memory.ledger import Ledger, Used
from rag_lab.runs.curable import Curable
from rag_lab.runs.margins import dated
from rag_lab.runs.race_record import ROUNDS_FOLDER, Cost, RaceRecord, RoundRecord, cost_of, read_race, write_race
from rag_lab.runs.run_folder import LEDGER_FILE, RunFolder

_LOGGER = logging.getLogger(__name__)


def round_folder(run: Path, number: int) -> Path:
    """Return the run folder of round `number`, from 1, within that of the race."""
    return run / ROUNDS_FOLDER / str(number)


def run_race(checked: Plan, run: RunFolder, options: RunOptions) -> RunFolder:
    """Run the rounds of a race and its proof in the run folder, which the caller has locked, and return that.

    Where a limit or an outage ends it before, race.json says so, and the next start goes on.

    Raises:
        RagLabError: before anything of an earlier run in the folder is replaced, if the race cannot start.
    """
    before, run = _earlier(run.path), dated(run)
    race = _new(checked, before)
    begin_race(checked, run)
    write_race(run.path, race)
    tell = say if options.progress else _say_nothing
    kept, left = kept_after_rounds(checked), [one.variant_id for one in checked.variants[1:]]
    for number, n_kept in enumerate(kept, start=1):
        plan = round_plan(checked, number, left)
        tell(f"Round {number} of {len(kept)}: {_told(plan)}.")
        part = plan.run_folder(round_folder(run.path, number))
        part.path.mkdir(parents=True, exist_ok=True)
        run_variants(plan, part, options, _used_beside(run.path, part.path))
        done = _dropped(run.path, plan, part, n_kept)
        left = [one.variant_id for one in done.standings if one.stays and one.variant_id != run.baseline]
        stopped = _why_stopped(number, done, part, _same_round(before, race, number))
        winner = left[0] if number == len(kept) and left and not stopped else ""
        race = replace(race, rounds=(*race.rounds, done), stopped=stopped, winner=winner)
        write_race(run.path, race)
        if stopped:
            return run
    proof = proof_plan(checked, race.winner)
    tell(f"Proof: {_told(proof)} that chose nothing.")
    proven = proof.run_folder(run.path)
    run_variants(proof, proven, options, _used_beside(run.path, run.path))
    return proven


def _earlier(run: Path) -> RaceRecord | None:
    try:
        return read_race(run)
    except DamagedFile as error:
        _LOGGER.warning("%s: the rounds are decided anew.", error.what)
        return None


def _say_nothing(sentence: str) -> None:
    pass


def _told(plan: Plan) -> str:
    return f"{counted(len(plan.variants), 'variant')} on {counted(len(plan.questions), 'question')}"


def _new(checked: Plan, before: RaceRecord | None) -> RaceRecord:
    """Return the record of a race that begins; what an earlier start of the same plan has estimated stands."""
    whole = full_plan(checked)
    plan = digest([run_identities(whole, checkout_file(NOTEBOOK)), checked.rounds])
    n_rounds = len(kept_after_rounds(checked))
    return RaceRecord(
        plan=plan,
        metric=deciding_metric(checked).name,
        sizes=tuple(len(ids) for ids in checked.rounds[:n_rounds]),
        n_variants=len(checked.variants),
        n_proof=len(checked.questions),
        repeats=checked.experiment.repeats,
        full=before.full if before is not None and before.plan == plan else _estimated(whole),
    )


def _estimated(whole: Plan) -> Cost:
    bill = estimate(whole)
    return Cost(bill.calls, sum(row.tokens for row in bill.rows), bill.cost_usd, bill.minutes, None)


def _dropped(race: Path, plan: Plan, part: RunFolder, n_kept: int) -> RoundRecord:
    """Return what a round that has run comes to."""
    metric, scores = plan.metrics[0], part.scores()
    labels = {one.variant_id: one.label for one in plan.variants}
    found = standings(scores, metric.name, metric.info.scale, labels, part.baseline, n_kept)
    closest = closest_call(scores, metric.name, metric.info.scale, found, part.baseline)
    unsettled = sum(Curable.of(state).total for state in _states(part).values())
    folder = part.path.relative_to(race).as_posix()
    return RoundRecord(folder, len(plan.questions), found, cost_of(part), closest, unsettled)


def _states(part: RunFolder) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = part.manifest().get("variants", {})
    return found


def _same_round(before: RaceRecord | None, race: RaceRecord, number: int) -> RoundRecord | None:
    """Return what an earlier start of the same plan has recorded of a round."""
    is_there = before is not None and before.plan == race.plan and len(before.rounds) >= number
    return before.rounds[number - 1] if before is not None and is_there else None


def _why_stopped(number: int, done: RoundRecord, part: RunFolder, earlier: RoundRecord | None) -> str:
    """Return why the race cannot go on after a round, or ''.

    A variant that a limit stopped, or of which an outage took questions, would be dropped for no fault of its own. What
    an earlier start has tried, too, and this one cured nothing of, counts as failed.
    """
    reasons = [str(state["reason"]) for state in _states(part).values() if state["status"] == "stopped"]
    if reasons:
        return f"The race stops in round {number}: {reasons[0]}."
    is_tried = earlier is not None and 0 < earlier.unsettled <= done.unsettled
    if done.unsettled and not is_tried:
        return (
            f"The race stops after round {number}, as {counted(done.unsettled, 'failure')} in it would drop variants "
            "for no fault of theirs: start the same command again and it tries them again."
        )
    if not any(one.stays and one.rank is not None for one in done.standings if one.variant_id != part.baseline):
        return f"The race stops after round {number}, as no variant beside the baseline has scores."
    return ""


def _used_beside(race: Path, folder: Path) -> Used:
    """Return what the race has used of its limits in its other folders."""
    others = [race, *sorted((race / ROUNDS_FOLDER).glob("*"))]
    return sum((Ledger(one / LEDGER_FILE).used_here() for one in others if one != folder), Used())
