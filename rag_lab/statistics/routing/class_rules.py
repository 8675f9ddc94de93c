"""Rules by class, learned on some questions and tried on others; whether classes matter; the best there could be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from rag_lab.statistics.intervals import mean_intervals, paired_differences
from rag_lab.statistics.routing.routing_table import cluster_column, complete
from rag_lab.statistics.scales import SHARE, Scale

ORACLE_COLUMNS = ("n", "oracle", "oracle_low", "oracle_high", "best_arm", "best_mean", "gain", "low", "high", "always")

MIN_QUESTIONS = 5  # of a class, for HyDE to be on in it
N_PERMUTATIONS = 499
_NOTHING = 1e-12  # a gain up to this is rounding

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Rules = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Trial:
    """What rules are learned from and tried on, and how.

    Args:
        gain: (n,), what HyDE adds to the score of each question, positive where that is better.
        classes: (n,), each question's class as a number from 1; 0 is no class, for which HyDE is off.
        groups: (n,), the number of each question's cluster, from 0; a cluster is in one fold as a whole.
        folds: of a repetition, at least 2.
        repetitions: with other folds each.
    """

    gain: Floats
    classes: Numbers
    groups: Numbers
    folds: int
    repetitions: int


def learned(trial: Trial) -> Rules:
    """Return for which classes all questions together say that HyDE pays, by the number of the class."""
    alone = np.zeros_like(trial.classes)
    return _rules(_per_fold(alone, trial.classes), _per_fold(alone, trial.classes, trial.gain)).ravel()


def cross_validated(trial: Trial, classes: Numbers, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return in which share of the repetitions each question is given HyDE, (n,), by rules it had no part in.

    By the rule for its class, if the questions had `classes`, and by the better of HyDE for all and for none.
    """
    by_class, for_all = np.zeros(len(classes)), np.zeros(len(classes))
    for _ in range(trial.repetitions):
        fold = _folds(classes, trial.groups, trial.folds, random)
        counts, sums = _per_fold(fold, classes), _per_fold(fold, classes, trial.gain)
        counts, sums = counts.sum(axis=0) - counts, sums.sum(axis=0) - sums  # of the other folds
        by_class += _rules(counts, sums)[fold, classes]
        for_all += (sums.sum(axis=1) > _NOTHING * counts.sum(axis=1))[fold]
    return by_class / trial.repetitions, for_all / trial.repetitions


def p_value(trial: Trial, seed: int, n_permutations: int = N_PERMUTATIONS) -> float:
    """Return how often routing gains as much over the better arm where the classes are dealt out at random.

    One-sided: the null hypothesis is that the classes say nothing about what HyDE adds. The whole procedure, folds and
    learning included, is repeated with classes permuted between questions, or between clusters with the questions in
    them. A test of the cross-validated gains themselves would not do: they share their rules, and it found a gain in
    10% to 14% of simulations without one.
    """
    random = np.random.default_rng(seed)
    observed = _gain(trial, trial.classes, random)
    dealt = (_permuted(trial.classes, trial.groups, random) for _ in range(n_permutations))
    n_as_good = sum(_gain(trial, classes, random) >= observed - _NOTHING for classes in dealt)
    return (1 + n_as_good) / (1 + n_permutations)


def _rules(counts: Floats, sums: Floats) -> Rules:
    """Return for which classes HyDE is on, by the number of questions and the sum of their gains, (folds, classes)."""
    is_on = (counts >= MIN_QUESTIONS) & (sums > _NOTHING * counts)
    is_on[:, 0] = False
    return is_on


def _gain(trial: Trial, classes: Numbers, random: np.random.Generator) -> float:
    by_class, for_all = cross_validated(trial, classes, random)
    return float(np.mean(trial.gain * (by_class - for_all)))


def _permuted(classes: Numbers, groups: Numbers, random: np.random.Generator) -> Numbers:
    """Return the classes dealt out anew: each cluster gets those of another, repeated or cut to its size."""
    members = _members(groups)
    if len(members) == len(classes):
        return random.permutation(classes)
    dealt = np.empty_like(classes)
    for own, other in zip(members, random.permutation(len(members)), strict=True):
        dealt[own] = np.resize(classes[members[other]], len(own))
    return dealt


def _members(groups: Numbers) -> list[Numbers]:
    return np.split(np.argsort(groups, kind="stable"), np.bincount(groups).cumsum()[:-1])


def _folds(classes: Numbers, groups: Numbers, folds: int, random: np.random.Generator) -> Numbers:
    """Return the fold of each question: every class is spread over the folds as evenly as whole clusters can be.

    The clusters are dealt out in random order, those with the same most frequent class one after the other.
    """
    class_of = _per_fold(groups, classes).argmax(axis=1)
    order = random.permutation(len(class_of))
    by_class = order[np.argsort(class_of[order], kind="stable")]
    fold = np.empty(len(order), dtype=np.int64)
    fold[by_class] = np.arange(len(order)) % folds
    return fold[groups]


def _per_fold(fold: Numbers, classes: Numbers, weights: Floats | None = None) -> Floats:
    """Return how many questions, or the sum of their weights, each fold has of each class, (folds, classes)."""
    n_folds, n_classes = int(fold.max()) + 1, int(classes.max()) + 1
    cells = np.bincount(fold * n_classes + classes, weights, minlength=n_folds * n_classes)
    return cells.astype(np.float64).reshape(n_folds, n_classes)


def oracle(table: pd.DataFrame, seed: int = 0, scale: Scale = SHARE) -> dict[str, Any]:
    """Return the ceiling of any router: for each question the better of `none` and `always`, known afterwards.

    It is optimistic: of two noisy scores the better is chosen, so that even two equal arms would show a gain. No router
    that must decide beforehand gets there; what the classes can give is measured by `learn_class_to_hyde`.

    Keys: `n`, `oracle` with `oracle_low` and `oracle_high`, `best_arm` (the better of the two for all), `best_mean`,
    `gain` of the oracle over it with `low` and `high` (negative where less is better), `always`: share of questions for
    which HyDE is the better arm.
    """
    rows = complete(table)
    none, always = rows["none"], rows["always"]
    best = list((pd.concat([none, always], axis=1) * scale.sign).max(axis=1) * scale.sign)
    clusters = cluster_column([rows])
    ceiling = mean_intervals([best], seed=seed, clusters=clusters)[0]
    arm = "always" if scale.sign * (always.sum() - none.sum()) > 0 else "none"
    gain = paired_differences([(best, list(rows[arm]))], seed=seed, clusters=clusters)[0]
    share = float((scale.sign * (always - none) > 0).mean()) if len(rows) else None
    best_mean = float(rows[arm].mean()) if len(rows) else None
    values = (len(rows), ceiling.mean, ceiling.low, ceiling.high, arm, best_mean, gain.mean, gain.low, gain.high, share)
    return dict(zip(ORACLE_COLUMNS, values, strict=True))
