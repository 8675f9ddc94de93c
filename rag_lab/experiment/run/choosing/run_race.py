"""A race at work: each round a sweep in a folder of its own, then the proof; what is decided is read from scores alone.

Whatever ends it, another start decides every round anew: what was computed is remembered, and rounds that are whole are
kept, so that goes fast, and what another attempt has cured counts.
"""

from __future__ import annotations

from functools import partial

from rag_lab._kit.digest import digest
from rag_lab.experiment.checkout import NOTEBOOK, checkout_file
from rag_lab.experiment.forecast.cost_estimate import estimate
from rag_lab.experiment.identity import run_identities
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.race.config import RaceConfig
from rag_lab.experiment.race.drop import race_standings
from rag_lab.experiment.race.rounds import deciding_metric, full_plan, looks_of, round_plan
from rag_lab.experiment.run.choosing.rounds_at_work import Rounds, best_of, earlier, staying
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.start_sweep import begin_race
from rag_lab.runs.margins import dated
from rag_lab.runs.race_record import Cost, RaceRecord, write_race
from rag_lab.runs.run_folder import RunFolder


def run_race(checked: Plan, run: RunFolder, options: RunOptions) -> RunFolder:
    """Run the rounds of a race and its proof in the run folder, which the caller has locked, and return that.

    Where a limit or an outage ends it before, race.json says so, and the next start goes on.

    Raises:
        RagLabError: before anything of an earlier run in the folder is replaced, if the race cannot start.
    """
    rounds = Rounds(dated(run), options, earlier(run.path))
    race = _new(checked, rounds.before)
    begin_race(checked, rounds.run)
    write_race(run.path, race)
    choose = partial(race_standings, looks=looks_of(checked))
    left = [one.variant_id for one in checked.variants[1:]]
    for number in range(1, len(checked.rounds) + 1):
        plan = round_plan(checked, number, left)
        part = rounds.work(number, plan, f"Round {number} of {len(checked.rounds)}")
        race = rounds.decided(race, plan, part, choose)
        if race.stopped:
            return rounds.run
        left = list(staying(race.rounds[-1], run.baseline))
        if len(left) <= 1:
            break
    return rounds.prove(checked, race, best_of(race.rounds[-1], run.baseline))


def _new(checked: Plan, before: RaceRecord | None) -> RaceRecord:
    """Return the record of a race that begins; what an earlier start of the same plan has estimated stands."""
    whole = full_plan(checked)
    plan = digest([run_identities(whole, checkout_file(NOTEBOOK)), checked.rounds])
    return RaceRecord(
        plan=plan,
        metric=deciding_metric(checked).name,
        sizes=tuple(len(ids) for ids in checked.rounds),
        n_variants=len(checked.variants),
        n_proof=len(checked.questions),
        repeats=checked.experiment.repeats,
        baseline=checked.expansion.baseline.variant_id,
        error=(checked.experiment.race or RaceConfig()).error,
        full=before.full if before is not None and before.plan == plan else _estimated(whole),
    )


def _estimated(whole: Plan) -> Cost:
    bill = estimate(whole)
    return Cost(bill.calls, sum(row.tokens for row in bill.rows), bill.cost_usd, bill.minutes, None)
