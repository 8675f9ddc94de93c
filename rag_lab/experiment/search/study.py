"""A study of optuna's over the factors of an experiment, kept in a database, so that a killed search goes on in it.

Trials choose by the results of earlier ones: TPE (Bergstra et al. 2011; Watanabe 2023) or NSGA-II (Deb et al. 2002),
both for one objective or several. The sampler is seeded anew for each batch, by the experiment's seed and the trials
that there are, so that a killed search asks for what it would have asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_lab.errors import ConfigError
from rag_lab.experiment.designs.factors import Changes, Factors
from rag_lab.statistics.effects.factors import level_text

if TYPE_CHECKING:
    from optuna import Study
    from optuna.samplers import BaseSampler

STUDY_FILE = "optuna.sqlite"
Values = tuple[float, ...]  # of the objectives, in their order


@dataclass(frozen=True)
class Trials:
    """The trials of one search.

    Args:
        study: of optuna's.
        factors: the values of each dotted key that has several.
        fixed: the value of each other key.
        sampler: `tpe` or `nsga2`.
        seed: of the experiment.
    """

    study: Study
    factors: Factors
    fixed: Changes
    sampler: str
    seed: int

    def open_ones(self) -> list[tuple[int, Changes]]:
        """Return the trials that wait for values, those of a killed start among them, as (number, combination)."""
        from optuna.trial import TrialState

        return [(one.number, self._chosen(one.params)) for one in self.study.get_trials(states=(TrialState.RUNNING,))]

    def told(self) -> list[tuple[Changes, Values]]:
        """Return the combinations of the trials that have values, with these, in the order in which they were made."""
        from optuna.trial import TrialState

        ended = self.study.get_trials(states=(TrialState.COMPLETE,))
        return [(self._chosen(one.params), tuple(one.values)) for one in ended]

    def asked(self) -> Iterator[tuple[int, Changes]]:
        """Yield new trials without end, the first of all the baseline; each waits until it is told."""
        from optuna.distributions import CategoricalDistribution

        if not self.study.trials:
            self.study.enqueue_trial({key: _texts(values)[0] for key, values in self.factors.items()})
        self.study.sampler = _sampler(self.sampler, self.seed + len(self.study.trials))
        choices = {key: CategoricalDistribution(_texts(values)) for key, values in self.factors.items()}
        while True:
            trial = self.study.ask(fixed_distributions=choices)
            yield trial.number, self._chosen(trial.params)

    def tell(self, number: int, values: Sequence[float] | None) -> None:
        """Tell what a trial came to, in the order of the objectives; None where it came to nothing."""
        from optuna.trial import TrialState

        if values is None:
            self.study.tell(number, state=TrialState.FAIL)
        else:
            self.study.tell(number, list(values))

    def _chosen(self, params: Mapping[str, Any]) -> Changes:
        by_text = {key: dict(zip(_texts(values), values, strict=True)) for key, values in self.factors.items()}
        return self.fixed | {key: by_text[key][params[key]] for key in self.factors}


def open_trials(
    folder: Path, store: str, name: str, upward: Sequence[bool], factors: Factors, sampler: str, seed: int
) -> Trials:
    """Open the study of this name, or a new one.

    Args:
        folder: of the run, which holds the study's database where `store` is ''.
        store: the address of a shared PostgreSQL database, as postgresql://…
        name: of the study: another one where anything differs that values depend on.
        upward: for each objective, whether more is better.
        factors: the values of each dotted key; those of one value are no parameters.
        sampler: `tpe` or `nsga2`.
        seed: of the experiment.

    Raises:
        ConfigError: if the database cannot be used.
    """
    import optuna
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    address = f"sqlite:///{folder / STUDY_FILE}"
    if store.startswith("postgres"):
        address = f"postgresql+psycopg://{store.partition('://')[2]}"
    try:
        study = optuna.create_study(
            storage=address,
            study_name=name,
            load_if_exists=True,
            sampler=_sampler(sampler, seed),
            directions=["maximize" if more else "minimize" for more in upward],
        )
    except (SQLAlchemyError, StorageInternalError) as error:
        where = "the shared database" if store else str(folder / STUDY_FILE)
        told = str(error.__cause__ or error).splitlines()[0]
        raise ConfigError(f"The trials in {where} cannot be read: {told}; delete them, or mend the database.") from None
    varied = {key: values for key, values in factors.items() if len(values) > 1}
    fixed = {key: values[0] for key, values in factors.items() if len(values) == 1}
    return Trials(study, varied, fixed, sampler, seed)


def _sampler(name: str, seed: int) -> BaseSampler:
    from optuna.samplers import NSGAIISampler, TPESampler

    return NSGAIISampler(seed=seed) if name == "nsga2" else TPESampler(seed=seed, multivariate=True, constant_liar=True)


def _texts(values: Sequence[Any]) -> list[str]:
    """Return a text for each value, as a database keeps it; numbered where two would be the same."""
    texts = [level_text(value) for value in values]
    if len(set(texts)) == len(texts):
        return texts
    return [f"{place} {json.dumps(text)}" for place, text in enumerate(texts)]
