"""Rules by class, learned on some questions and tried on others; whether classes matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
    dealt = (dealt_out(trial.classes, trial.groups, random) for _ in range(n_permutations))
    n_as_good = sum(_gain(trial, classes, random) >= observed - _NOTHING for classes in dealt)
    return (1 + n_as_good) / (1 + n_permutations)


def dealt_out(classes: Numbers, groups: Numbers, random: np.random.Generator) -> Numbers:
    """Return the classes dealt out anew: each cluster gets those of another, repeated or cut to its size."""
    members = _members(groups)
    if len(members) == len(classes):
        return random.permutation(classes)
    dealt = np.empty_like(classes)
    for own, other in zip(members, random.permutation(len(members)), strict=True):
        dealt[own] = np.resize(classes[members[other]], len(own))
    return dealt


def _rules(counts: Floats, sums: Floats) -> Rules:
    """Return for which classes HyDE is on, by the number of questions and the sum of their gains, (folds, classes)."""
    is_on = (counts >= MIN_QUESTIONS) & (sums > _NOTHING * counts)
    is_on[:, 0] = False
    return is_on


def _gain(trial: Trial, classes: Numbers, random: np.random.Generator) -> float:
    by_class, for_all = cross_validated(trial, classes, random)
    return float(np.mean(trial.gain * (by_class - for_all)))


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
