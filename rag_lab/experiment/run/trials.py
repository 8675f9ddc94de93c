"""Trials of optuna over the factors of an experiment: variants of one growing sweep, in batches that run at a time.

They choose by the results of earlier ones: TPE (Bergstra et al. 2011; Watanabe 2023) or NSGA-II (Deb et al. 2002), both
for one objective or several. The study is kept in a database. A search that was killed goes on in it: trials without
values run first, and the sampler is seeded anew for each batch, by the experiment's seed and the trials that there are,
so that it asks for what it would have asked for.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_lab._kit import digest, registry
from rag_lab.errors import ConfigError
from rag_lab.experiment import built_in_designs, design, manifest, race, stage_identities
from rag_lab.experiment.config import NOTEBOOK, checkout_file
from rag_lab.experiment.plan import Plan, readers_of
from rag_lab.experiment.run.run_options import AUTO, RunOptions, side_by_side
from rag_lab.runs import run_folder, run_manifest

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import TrialState

STUDY_FILE = "optuna.sqlite"
MOST_REPEATS = 50  # trials in a row that are nothing new: then the sampler has nothing more to propose
Values = tuple[float, ...]  # of the objectives, in their order


@dataclass
class SearchVariants:
    """Makes the variants of a plan's factors; a combination has the same name whenever it is made."""

    plan: Plan
    variants: dict[str, design.Variant] = field(default_factory=dict)
    values: dict[str, Values | None] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def variant(self, choice: design.Changes) -> design.Variant:
        """Return the variant of a combination; a ConfigError where its values cannot stand together."""
        given = self.plan.experiment
        with registry.modules_from(self.plan.folder):
            config = given.base.override(design.settled(given.base.flat(), choice, given.factors, given.only_if))
        changes, factors = config.differing(self.plan.expansion.baseline.config), given.factors
        if not changes:
            return self.plan.expansion.baseline
        name = design.variant_id(changes, among=factors)
        for values, key in ((factors[key], key) for key in changes if key in factors):
            if len({design.variant_id({key: value}, among=factors).casefold() for value in values}) < len(values):
                name = f"{design.variant_id(changes, among=factors)}-{digest.digest_word(changes)}"
        return design.Variant(name, design.variant_label(changes), changes, config)

    @cached_property
    def readers(self) -> stage_identities.Readers:
        """Return what is read of the pipelines while they are chosen among."""
        part = race.round_plan(self.plan, 1, [])
        return readers_of(part.experiment, part.dataset, part.questions, part.answered)

    def name(self, choice: design.Changes) -> str:
        """Keep the variant that is run for a combination, and return its name; '' where its values clash."""
        try:
            one = self.variant(choice)
        except ConfigError:
            return ""
        known = digest.digest(stage_identities.effective(one.config, self.readers))
        name = self._names.setdefault(known, one.variant_id)
        return self.variants.setdefault(name, one).variant_id

    def expansion(self, choices: Sequence[design.Changes]) -> tuple[design.Expansion, dict[str, design.Changes]]:
        """Return the variants of combinations, each pipeline once, and the first combination by each variant's name.

        The first is that with which others are compared. One whose values cannot stand together is left out with a
        notice.
        """
        variants, named, notices = dict[str, design.Variant](), dict[str, design.Changes](), list[str]()
        for choice in choices:
            try:
                one = self.variant(choice)
            except ConfigError as error:
                notices.append(f"Left out: {design.variant_label(choice)}: {error}")
                continue
            variants.setdefault(one.variant_id, one)
            named.setdefault(one.variant_id, choice)
        against = next(iter(variants.values())).config
        compared = [replace(one, changes=one.config.differing(against)) for one in variants.values()]
        return stage_identities.run_once(design.Expansion(tuple(compared), tuple(notices)), self.readers), named


@dataclass(frozen=True)
class Trials:
    """The trials of one search."""

    study: Study
    states: type[TrialState]
    factors: Mapping[str, Mapping[str, Any]]  # of each dotted key that has several values, these by their text
    fixed: design.Changes  # the value of each other key
    sampler: str  # tpe or nsga2
    seed: int

    def open_ones(self) -> list[tuple[int, design.Changes]]:
        """Return the trials that wait for values, those of a killed start among them, as (number, combination)."""
        return [(one.number, self._chosen(one.params)) for one in self.study.get_trials(states=(self.states.RUNNING,))]

    def completed(self) -> list[tuple[design.Changes, Values]]:
        """Return the combinations of the trials that have values, with these, in the order in which they were made."""
        ended = self.study.get_trials(states=(self.states.COMPLETE,))
        return [(self._chosen(one.params), tuple(one.values)) for one in ended]

    def asked(self) -> Iterator[tuple[int, design.Changes]]:
        """Yield new trials without end, the first of all the baseline; each waits until it is finished."""
        import optuna

        if not self.study.trials:
            self.study.enqueue_trial({key: next(iter(values)) for key, values in self.factors.items()})
        seed, samplers = self.seed + len(self.study.trials), optuna.samplers
        if self.sampler == "nsga2":
            self.study.sampler = samplers.NSGAIISampler(seed=seed)
        else:
            self.study.sampler = samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
        categories = optuna.distributions.CategoricalDistribution
        choices = {key: categories(list(values)) for key, values in self.factors.items()}
        while True:
            trial = self.study.ask(fixed_distributions=choices)
            yield trial.number, self._chosen(trial.params)

    def finish(self, number: int, values: Sequence[float] | None) -> None:
        """Record what a trial came to, in the order of the objectives; None where it came to nothing."""
        self.study.tell(number, values, self.states.FAIL if values is None else None)

    def _chosen(self, params: Mapping[str, Any]) -> design.Changes:
        return self.fixed | {key: values[params[key]] for key, values in self.factors.items()}


def open_trials(
    folder: Path, store: str, name: str, upward: Sequence[bool], factors: design.Factors, sampler: str, seed: int
) -> Trials:
    """Open the study of this name, or a new one, in `folder` or, where `store` names one, in a PostgreSQL database.

    The name is another one where anything differs that values depend on. `upward`: for each objective, whether more is
    better. Factors of one value are no parameters.
    """
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    from rag_lab.statistics.effects import level_text

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    address = f"sqlite:///{folder / STUDY_FILE}"
    if store.startswith("postgres"):
        address = f"postgresql+psycopg://{store.partition('://')[2]}"
    ways = ["maximize" if more else "minimize" for more in upward]
    try:
        study = optuna.create_study(storage=address, study_name=name, load_if_exists=True, directions=ways)
    except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        where = "the shared database" if store else str(folder / STUDY_FILE)
        why = f"{str(error.__cause__ or error).splitlines()[0]}; delete them, or mend the database."
        raise ConfigError(f"The trials in {where} cannot be read: {why}") from None
    varied = dict[str, dict[str, Any]]()  # a database keeps texts; they are numbered where two would be the same
    for key, values in ((key, values) for key, values in factors.items() if len(values) > 1):
        texts = list(map(level_text, values))
        if len(set(texts)) < len(texts):
            texts = [f"{place} {json.dumps(text)}" for place, text in enumerate(texts)]
        varied[key] = dict(zip(texts, values, strict=True))
    fixed = {key: values[0] for key, values in factors.items() if len(values) == 1}
    return Trials(study, optuna.trial.TrialState, varied, fixed, sampler, seed)


def open_study(checked: Plan, run: run_folder.RunFolder) -> Trials:
    """Open the trials of a search."""
    given, goals = checked.experiment, race.aims(checked)
    alone = replace(checked, expansion=design.Expansion((checked.expansion.baseline,)))
    baseline = manifest.run_identities(race.round_plan(alone, 1, []), checkout_file(NOTEBOOK))
    sampler = given.sampler or built_in_designs.SAMPLERS[0]
    same = digest.digest([baseline, given.factors, given.only_if, sampler, given.seed, [one.name for one in goals]])
    run.path.mkdir(parents=True, exist_ok=True)
    store, upward = os.environ.get("RAG_LAB_STORE", ""), [one.info.scale.higher_is_better for one in goals]
    return open_trials(run.path, store, f"{given.name}-{same[:16]}", upward, given.factors, sampler, given.seed)


def trial_rounds(
    checked: Plan,
    run: run_folder.RunFolder,
    options: RunOptions,
    work: Callable[[Plan, str], run_folder.RunFolder],
    trials: Trials,
) -> race.Rounds:
    """Yield the one round of a search, of all its trials; `work` runs what there is of it, without a report."""
    goals, wanted, known = race.aims(checked), checked.experiment.n or 0, SearchVariants(checked)
    known.name(design.first_values(checked.experiment.factors))
    for choice, values in trials.completed():
        known.values[known.name(choice)] = values
    waiting = [(number, known.name(choice)) for number, choice in trials.open_ones()]
    while True:
        # Trials are asked for before any of those that run side by side has values.
        if (at_a_time := options.jobs) == AUTO:
            at_a_time, _ = side_by_side(checked.variants, checked.experiment.metrics, run)
        waiting = _filled(waiting, trials, known, at_a_time, wanted)
        found = replace(checked, expansion=design.Expansion(tuple(known.variants.values())))
        so_far = race.round_plan(found, 1, list(known.variants)), f"Trials, {len(known.variants)} of {wanted}"
        if not waiting:
            break
        part = work(*so_far)
        states = part.manifest().get("variants", {}).values()
        is_open = (state["status"] == "stopped" or run_manifest.Retryable.of(state).total for state in states)
        if any(is_open):  # a later start goes on
            break
        from rag_lab.statistics import summaries

        scores, means = part.scores(), dict[str, list[float | None]]()  # what failed counts as the worst value
        for goal in goals:
            scale = summaries.scales_of(scores, {goal.name: goal.info.scale}).get(goal.name, goal.info.scale)
            for row in summaries.ranking(scores, goal.name, scale).to_dict("records"):
                value = row["mean"] if row["ranked_by"] is None else row["ranked_by"]
                means.setdefault(str(row["variant_id"]), []).append(value)
        for name, by_goal in means.items():
            scored = tuple(value for value in by_goal if value is not None)
            known.values[name] = scored if len(scored) == len(goals) else None
        for number, name in waiting:
            trials.finish(number, known.values.get(name))
        waiting = []
    done = yield race.Round(1, *so_far, partial(race.standings, n_kept=1))
    winner = known.variants[race.staying(done, run.baseline)[0]]
    return replace(checked, expansion=design.Expansion((checked.expansion.baseline, winner))), winner.variant_id


def _filled(
    waiting: Sequence[tuple[int, str]], trials: Trials, known: SearchVariants, n: int, wanted: int
) -> list[tuple[int, str]]:
    """Return the trials that wait, and new ones, so that `n` variants are to be run; none where no more are wanted."""
    found: list[tuple[int, str]] = []
    coming = trials.asked() if len(known.values) < wanted else iter(())
    repeats, queue = 0, list(waiting)
    while True:
        for number, name in queue:
            if not name or name in known.values:
                trials.finish(number, known.values.get(name))
                repeats += 1
            else:
                repeats = repeats + 1 if name in {one for _, one in found} else 0
                found.append((number, name))
        to_run = {name for _, name in found}
        is_full = len(to_run) >= n or len(to_run | known.values.keys()) >= wanted
        if is_full or repeats > MOST_REPEATS or (following := next(coming, None)) is None:
            return found
        queue = [(following[0], known.name(following[1]))]
