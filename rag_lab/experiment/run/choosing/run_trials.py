"""Trials at work: each is a variant of one growing sweep, made in batches of as many as run at a time, then the proof.

The study is kept beside the run. A search that was killed goes on in it: trials without values are run first, which is
quick where their variants are whole or what they computed is remembered.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from rag_lab._kit.digest import digest
from rag_lab.errors import ConfigError
from rag_lab.evaluation.registry import ParsedName
from rag_lab.experiment.checkout import NOTEBOOK, checkout_file
from rag_lab.experiment.design import Expansion, Variant
from rag_lab.experiment.designs.combinations import OPTUNA, SAMPLERS
from rag_lab.experiment.designs.factors import Changes
from rag_lab.experiment.identity import run_identities
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.race.drop import standings
from rag_lab.experiment.race.rounds import aims, round_plan
from rag_lab.experiment.run.choosing.rounds_at_work import Rounds, earlier, staying
from rag_lab.experiment.run.choosing.run_staged import new_search
from rag_lab.experiment.run.run_options import RunOptions
from rag_lab.experiment.run.side_by_side import AUTO, side_by_side
from rag_lab.experiment.run.start_sweep import begin_race
from rag_lab.experiment.same_pipeline import effective
from rag_lab.experiment.search.search_variants import SearchVariants
from rag_lab.experiment.search.study import Trials, Values, open_trials
from rag_lab.experiment.stage_identities import Readers
from rag_lab.runs.margins import dated
from rag_lab.runs.race_record import write_race
from rag_lab.runs.run_folder import RunFolder
from rag_lab.runs.run_manifest import Retryable
from rag_lab.statistics.scales import scales_of
from rag_lab.statistics.summaries import ranking

STORE_VARIABLE = "RAG_LAB_STORE"
MOST_REPEATS = 50  # trials in a row that are nothing new: then the sampler has nothing more to propose


def run_trials(checked: Plan, run: RunFolder, options: RunOptions) -> RunFolder:
    """Run trials and the proof of the best in the run folder, which the caller has locked, and return that.

    Raises:
        RagLabError: before anything of an earlier run in the folder is replaced, if the search cannot start.
    """
    rounds, goals = Rounds(dated(run), options, earlier(run.path), "search"), aims(checked)
    trials = _trials(checked, run, goals)
    race = new_search(checked, OPTUNA, tuple(one.name for one in goals))
    begin_race(checked, rounds.run)
    write_race(run.path, race)
    made = SearchVariants(checked)
    known, wanted = _Known(made, made.readers), checked.experiment.n or 0
    known.name(made.first)
    for choice, values in trials.told():
        known.values[known.name(choice)] = values
    waiting = [(number, known.name(choice)) for number, choice in trials.open_ones()]
    while waiting := _filled(waiting, trials, known, _at_a_time(checked, run, options), wanted):
        part = rounds.work(1, _plan(checked, known), _called(known, wanted), has_report=False)
        if _is_stopped(part):
            break
        known.values |= _values(part, goals)
        for number, name in waiting:
            trials.tell(number, known.values.get(name))
        waiting = []
    plan = _plan(checked, known)
    part = rounds.work(1, plan, _called(known, wanted))
    race = rounds.decided(race, plan, part, partial(standings, n_kept=1))
    if race.stopped:
        return rounds.run
    winner = known.variants[staying(race.rounds[0], run.baseline)[0]]
    proven = replace(checked, expansion=Expansion((checked.expansion.baseline, winner)))
    return rounds.prove(proven, race, winner.variant_id)


@dataclass
class _Known:
    """The variants of the trials so far, each pipeline once, and the values that are known of them."""

    made: SearchVariants
    readers: Readers
    variants: dict[str, Variant] = field(default_factory=dict)
    values: dict[str, Values | None] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def name(self, choice: Changes) -> str:
        """Return the variant that is run for a combination; '' where its values cannot stand together."""
        try:
            one = self.made.variant(choice)
        except ConfigError:
            return ""
        name = self._names.setdefault(digest(effective(one.config, self.readers)), one.variant_id)
        return self.variants.setdefault(name, one).variant_id


def _filled(
    waiting: Sequence[tuple[int, str]], trials: Trials, known: _Known, n: int, wanted: int
) -> list[tuple[int, str]]:
    """Return the trials that wait, and new ones, so that `n` variants are to be run; none where no more are wanted."""
    found: list[tuple[int, str]] = []
    repeats = 0
    asked: Iterable[tuple[int, Changes]] = trials.asked() if len(known.values) < wanted else ()
    coming = iter(asked)
    queue = list(waiting)
    while True:
        for number, name in queue:
            if not name or name in known.values:
                trials.tell(number, known.values.get(name))
                repeats += 1
            else:
                repeats = repeats + 1 if name in {one for _, one in found} else 0
                found.append((number, name))
        to_run = {name for _, name in found}
        is_full = len(to_run) >= n or len(to_run | known.values.keys()) >= wanted
        if is_full or repeats > MOST_REPEATS or (following := next(coming, None)) is None:
            return found
        queue = [(following[0], known.name(following[1]))]


def _at_a_time(checked: Plan, run: RunFolder, options: RunOptions) -> int:
    """Return how many trials are asked for before any of them has values: those that run side by side."""
    if options.jobs != AUTO:
        return options.jobs
    return side_by_side(checked.variants, checked.experiment.metrics, run).jobs


def _trials(checked: Plan, run: RunFolder, goals: Sequence[ParsedName]) -> Trials:
    given = checked.experiment
    alone = replace(checked, expansion=Expansion((checked.expansion.baseline,)))
    baseline = run_identities(round_plan(alone, 1, []), checkout_file(NOTEBOOK))
    sampler = given.sampler or SAMPLERS[0]
    same = digest([baseline, given.factors, given.only_if, sampler, given.seed, [one.name for one in goals]])
    run.path.mkdir(parents=True, exist_ok=True)
    return open_trials(
        run.path,
        os.environ.get(STORE_VARIABLE, ""),
        f"{given.name}-{same[:16]}",
        [one.info.scale.higher_is_better for one in goals],
        given.factors,
        sampler,
        given.seed,
    )


def _plan(checked: Plan, known: _Known) -> Plan:
    variants = tuple(known.variants.values())
    return round_plan(replace(checked, expansion=Expansion(variants)), 1, list(known.variants))


def _called(known: _Known, wanted: int) -> str:
    return f"Trials, {len(known.variants)} of {wanted}"


def _is_stopped(part: RunFolder) -> bool:
    """Tell whether a limit or an outage has kept a variant from its values; a later start tries again."""
    states = part.manifest().get("variants", {}).values()
    return any(state["status"] == "stopped" or Retryable.of(state).total for state in states)


def _values(part: RunFolder, goals: Sequence[ParsedName]) -> dict[str, Values | None]:
    """Return for each variant its mean in each objective, what failed at the worst value; None without one."""
    scores = part.scores()
    found: dict[str, list[float | None]] = {}
    for goal in goals:
        scale = scales_of(scores, {goal.name: goal.info.scale}).get(goal.name, goal.info.scale)
        for row in ranking(scores, goal.name, scale).to_dict("records"):
            value = row["mean"] if row["ranked_by"] is None else row["ranked_by"]
            found.setdefault(str(row["variant_id"]), []).append(value)
    known = {name: [one for one in values if one is not None] for name, values in found.items()}
    return {name: tuple(values) if len(values) == len(goals) else None for name, values in known.items()}
