"""What races and searches share while they run: a round as a sweep in a folder of its own, and what it came to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_lab._kit.wording import counted
from rag_lab.errors import DamagedFile
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.race.config import RACING
from rag_lab.experiment.race.drop import closest_call
from rag_lab.experiment.race.rounds import deciding_metric, proof_plan
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.run_variants import run_variants
from rag_lab.experiment.run.sweep_progress import say
from rag_lab.memory.ledger import Ledger, Used
from rag_lab.runs.race_record import (
    ROUNDS_FOLDER,
    RaceRecord,
    RoundRecord,
    Standing,
    cost_of,
    read_race,
    round_folder,
    write_race,
)
from rag_lab.runs.run_folder import LEDGER_FILE, RunFolder
from rag_lab.runs.run_manifest import Retryable

_LOGGER = logging.getLogger(__name__)

Choose = Callable[..., tuple[Standing, ...]]  # of scores, metric, its scale, labels and the baseline: see `drop`


@dataclass(frozen=True)
class Rounds:
    """The rounds of one run folder, which the caller has locked; `before` is what an earlier start has recorded."""

    run: RunFolder
    options: RunOptions
    before: RaceRecord | None
    what: str = "race"

    def tell(self, sentence: str) -> None:
        """Say a sentence where somebody watches."""
        if self.options.progress:
            say(sentence)

    def work(self, number: int, plan: Plan, called: str, *, has_report: bool = True) -> RunFolder:
        """Run round `number` (from 1) and return its folder."""
        self.tell(f"{called}: {_told(plan)}.")
        part = plan.run_folder(round_folder(self.run.path, number))
        part.path.mkdir(parents=True, exist_ok=True)
        run_variants(plan, part, self.options, used_beside(self.run.path, part.path), has_report=has_report)
        return part

    def decided(self, race: RaceRecord, plan: Plan, part: RunFolder, choose: Choose, title: str = "") -> RaceRecord:
        """Return the record with what a round that has run comes to; `choose` says who stays.

        `stopped` says why it cannot go on, if it cannot.
        """
        number = len(race.rounds) + 1
        done = _done(self.run.path, plan, part, choose, title)
        stopped = _why_stopped(self.what, number, done, part, _same_round(self.before, race, number))
        race = replace(race, rounds=(*race.rounds, done), stopped=stopped)
        write_race(self.run.path, race)
        return race

    def prove(self, plan: Plan, race: RaceRecord, winner: str) -> RunFolder:
        """Run the proof of the winner, a variant of `plan`, in the run folder itself, and return that."""
        write_race(self.run.path, replace(race, winner=winner))
        proof = proof_plan(plan, winner)
        self.tell(f"Proof: {_told(proof)} that chose nothing.")
        proven = proof.run_folder(self.run.path)
        run_variants(proof, proven, self.options, used_beside(self.run.path, self.run.path))
        return proven


def earlier(run: Path) -> RaceRecord | None:
    """Return what an earlier start has recorded, or None."""
    try:
        return read_race(run)
    except DamagedFile as error:
        _LOGGER.warning("%s: the rounds are decided anew.", error.what)
        return None


def used_beside(race: Path, folder: Path) -> Used:
    """Return what a run has used of its limits in its other folders."""
    others = [race, *sorted((race / ROUNDS_FOLDER).glob("*"))]
    return sum((Ledger(one / LEDGER_FILE).used_here() for one in others if one != folder), Used())


def staying(done: RoundRecord, baseline: str) -> Sequence[str]:
    """Return the variants beside the baseline that a round keeps."""
    return [one.variant_id for one in done.standings if one.stays and one.variant_id != baseline]


def best_of(done: RoundRecord, baseline: str) -> str:
    """Return the variant with the best mean of those that stay; of all, where the baseline alone is left."""
    return next(iter(staying(done, baseline) or [o.variant_id for o in done.standings if o.variant_id != baseline]))


def _told(plan: Plan) -> str:
    return f"{counted(len(plan.variants), 'variant')} on {counted(len(plan.questions), 'question')}"


def _done(race: Path, plan: Plan, part: RunFolder, choose: Choose, title: str) -> RoundRecord:
    metric, scores = deciding_metric(plan), part.scores()
    labels = {one.variant_id: one.label for one in plan.variants}
    found = choose(scores, metric.name, metric.info.scale, labels, part.baseline)
    is_race = plan.experiment.design == RACING  # which drops by no nearness of means
    closest = None if is_race else closest_call(scores, metric.name, metric.info.scale, found, part.baseline)
    unsettled = sum(Retryable.of(state).total for state in _states(part).values())
    folder = part.path.relative_to(race).as_posix()
    return RoundRecord(folder, len(plan.questions), found, cost_of(part), closest, unsettled, title)


def _states(part: RunFolder) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = part.manifest().get("variants", {})
    return found


def _same_round(before: RaceRecord | None, race: RaceRecord, number: int) -> RoundRecord | None:
    """Return what an earlier start of the same plan has recorded of a round."""
    is_there = before is not None and before.plan == race.plan and len(before.rounds) >= number
    return before.rounds[number - 1] if before is not None and is_there else None


def _why_stopped(what: str, number: int, done: RoundRecord, part: RunFolder, earlier: RoundRecord | None) -> str:
    """Return why no other round can follow, or ''.

    A variant that a limit stopped, or of which an outage took questions, would be dropped for no fault of its own. What
    an earlier start has tried, too, and this one cured nothing of, counts as failed.
    """
    reasons = [str(state["reason"]) for state in _states(part).values() if state["status"] == "stopped"]
    if reasons:
        return f"The {what} stops in round {number}: {reasons[0]}."
    is_tried = earlier is not None and 0 < earlier.unsettled <= done.unsettled
    if done.unsettled and not is_tried:
        return (
            f"The {what} stops after round {number}, as {counted(done.unsettled, 'failure')} in it would drop variants "
            "for no fault of theirs: start the same command again and it tries them again."
        )
    if not any(one.rank is not None for one in done.standings if one.variant_id != part.baseline):
        return f"The {what} stops after round {number}, as no variant beside the baseline has scores."
    return ""
