"""A search stage by stage at work: each stage is a sweep that varies its factors, and the best is carried on.

Another start decides every stage anew from what is remembered, as a race does.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from rag_lab._kit.digest import digest
from rag_lab.experiment.checkout import NOTEBOOK, checkout_file
from rag_lab.experiment.design import Expansion
from rag_lab.experiment.designs.factors import Changes
from rag_lab.experiment.designs.stages import STAGED, stage_choices, stages_of
from rag_lab.experiment.identity import run_identities
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.race.drop import standings
from rag_lab.experiment.race.rounds import deciding_metric, round_plan
from rag_lab.experiment.run.choosing.rounds_at_work import Rounds, best_of, earlier
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.start_sweep import begin_race
from rag_lab.experiment.search.search_variants import SearchVariants
from rag_lab.runs.margins import dated
from rag_lab.runs.race_record import Cost, RaceRecord, RoundRecord, Standing, write_race
from rag_lab.runs.run_folder import RunFolder


def run_staged(checked: Plan, run: RunFolder, options: RunOptions) -> RunFolder:
    """Run the stages of a search and its proof in the run folder, which the caller has locked, and return that.

    Raises:
        RagLabError: before anything of an earlier run in the folder is replaced, if the search cannot start.
    """
    rounds = Rounds(dated(run), options, earlier(run.path), "search")
    begin_race(checked, rounds.run)
    race = new_search(checked, STAGED)
    write_race(run.path, race)
    made, stages = SearchVariants(checked), stages_of(checked.experiment.factors)
    carried: Changes = made.first
    choices: dict[str, Changes] = {}
    for number, (stage, keys) in enumerate(stages.items(), start=1):
        wanted = [made.settled(one) for one in stage_choices(checked.experiment.factors, keys, carried)]
        expansion = made.expansion(wanted)
        if len(expansion.variants) == 1:
            rounds.tell(f"Stage {stage}: nothing in it can change {race.metric}, so that its first values stay.")
            continue
        choices |= made.named(wanted)
        plan = round_plan(replace(checked, expansion=expansion), number, [v.variant_id for v in expansion.variants])
        part = rounds.work(number, plan, f"Stage {stage}, {number} of {len(stages)}")
        race = rounds.decided(race, plan, part, partial(standings, n_kept=0), title=stage)
        if race.stopped:
            return rounds.run
        carried = choices[_best(race.rounds[-1]).variant_id]
    winner = made.variant(carried)
    if winner.variant_id == run.baseline:
        winner = made.variant(choices[best_of(race.rounds[-1], run.baseline)])
    proven = replace(checked, expansion=Expansion((checked.expansion.baseline, winner)))
    return rounds.prove(proven, race, winner.variant_id)


def new_search(checked: Plan, design: str, objectives: tuple[str, ...] = ()) -> RaceRecord:
    """Return the record of a search that begins."""
    identities = run_identities(checked, checkout_file(NOTEBOOK))
    return RaceRecord(
        plan=digest([identities, checked.rounds, design]),
        metric=deciding_metric(checked).name,
        sizes=(len(checked.rounds[0]),),
        n_variants=len(checked.variants),
        n_proof=len(checked.questions),
        repeats=checked.experiment.repeats,
        full=Cost(),
        design=design,
        objectives=objectives,
    )


def _best(done: RoundRecord) -> Standing:
    """Return the first by mean, that with which the others were compared among them."""
    return done.standings[0]
