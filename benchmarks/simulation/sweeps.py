"""Simulated sweeps whose truth is known: real vectors of the demo and made-up scores, clusters, failures, rare changes.

Each kind draws n questions of k variants against a baseline. Where none differs, variants and baseline are
interchangeable; a sweep is `partial` where every other variant truly differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from simulated_scores import FAMILIES, documents_of

from simulation.demo_scores import Floats, scored, vectors

LIFT = 0.3

Numbers = npt.NDArray[np.int64]
Random = np.random.Generator


@dataclass(frozen=True)
class Sweep:
    """What a sweep of k variants has seen on n questions.

    scores: (n, k + 1), the baseline first; NaN where one failed.
    truth: (k,) the sign of each true difference.
    groups: (n,) the declared cluster of each question.
    """

    scores: Floats
    truth: Floats
    groups: Numbers | None = None

    @property
    def differences(self) -> Floats:
        """The (n, k) differences from the baseline, NaN where either failed."""
        return self.scores[:, 1:] - self.scores[:, :1]

    @property
    def filled(self) -> Floats:
        """The same with failures at the worst score, 0."""
        filled = np.nan_to_num(self.scores)
        return filled[:, 1:] - filled[:, :1]

    def first(self, k: int) -> Sweep:
        """Return the sweep of the first k variants alone."""
        return Sweep(self.scores[:, : k + 1], self.truth[:k], self.groups)


Kind = Callable[[Random, int, int, bool], Sweep]  # (generator, questions, variants, whether partial)


def changed(k: int, is_partial: bool) -> Floats:
    """Return (k,) 1 for the variants that truly differ."""
    return (np.arange(k) % 2) * float(is_partial)


def demo_signs(random: Random, n: int, k: int, is_partial: bool) -> Sweep:
    """Draw whole questions of k of the demo's 35 vectors, each with a sign; of a true difference 80% point upwards."""
    real, truth = vectors(), changed(k, is_partial)
    drawn = real[random.integers(0, len(real), n)][:, random.choice(real.shape[1], k, replace=False)]
    toss = random.random((n, 1))
    signed = np.where(
        truth > 0, np.where(toss < 0.8, np.abs(drawn), -np.abs(drawn)), np.where(toss < 0.5, drawn, -drawn)
    )
    return _against_nothing(signed, truth)


def demo_scores(random: Random, n: int, k: int, is_partial: bool) -> Sweep:
    """Deal each variant one of the scores that the demo's variants have in a question, the better of two if lifted."""
    real, truth = scored(), changed(k + 1, is_partial)
    rows = real[random.integers(0, len(real), n)]
    one, other = (np.take_along_axis(rows, random.integers(0, real.shape[1], (n, k + 1)), axis=1) for _ in range(2))
    return Sweep(np.where(truth > 0, np.maximum(one, other), one), truth[1:])


def made_up(name: str, random: Random, n: int, k: int, is_partial: bool) -> Sweep:
    """Draw scores of the shapes of `simulated_scores`."""
    truth = changed(k + 1, is_partial)
    return Sweep(FAMILIES[name](random, n, LIFT * truth), truth[1:])


def documents(n_clusters: int, random: Random, n: int, k: int, is_partial: bool) -> Sweep:
    """Draw scores of documents of unequal size, some of which suit a variant very badly."""
    truth, groups = changed(k + 1, is_partial), unequal(n, max(n_clusters, n // 12))
    ability = random.beta(2, 2, (groups.max() + 1, 1)) * 0.6 - random.exponential(0.15, (groups.max() + 1, k + 1))
    return Sweep((ability + 0.15 * truth)[groups] + random.normal(0, 0.15, (n, k + 1)), truth[1:], groups)


def lost_documents(n_clusters: int, random: Random, n: int, k: int, is_partial: bool) -> Sweep:
    """Score 1, but 0 on all questions about each document that a variant does not find: 20%, or 2% if it is better."""
    truth, groups = changed(k + 1, is_partial), unequal(n, max(n_clusters, n // 12))
    lost = random.random((groups.max() + 1, k + 1)) < np.where(truth > 0, 0.02, 0.2)
    return Sweep(1.0 - lost[groups], truth[1:], groups)


def unequal(n: int, n_clusters: int) -> Numbers:
    """Return the cluster of each of n questions, the largest about ten times the smallest."""
    ends = np.cumsum(np.geomspace(1, 10, n_clusters))
    return np.searchsorted(ends / ends[-1], (np.arange(n) + 0.5) / n)


def undeclared(random: Random, n: int, k: int, is_partial: bool) -> Sweep:
    """Draw four questions a document, and say nothing of it."""
    return made_up("clustered", random, n, k, is_partial)


def declared(random: Random, n: int, k: int, is_partial: bool) -> Sweep:
    """Draw the same and say it."""
    sweep = undeclared(random, n, k, is_partial)
    return Sweep(sweep.scores, sweep.truth, np.array(documents_of(n)))


def hard_failures(random: Random, n: int, k: int, is_partial: bool) -> Sweep:
    """Let each variant fail on half of the hardest fifth of the questions."""
    truth = changed(k + 1, is_partial)
    scores = FAMILIES["skewed"](random, n, LIFT * truth)
    hardness = scores.mean(axis=1, keepdims=True)
    fails = (hardness <= np.quantile(hardness, 0.2)) & (random.random(scores.shape) < 0.5)
    return Sweep(np.where(fails, np.nan, scores), truth[1:])


def own_zeros(name: str, share: float, random: Random, n: int, k: int, is_partial: bool) -> Sweep:
    """Let two of three variants fail where they would score 0, on a share of these questions."""
    truth = changed(k + 1, is_partial)
    scores = FAMILIES[name](random, n, LIFT * truth)
    fails = (scores == 0) & (np.arange(k + 1) % 3 > 0) & (random.random(scores.shape) < share)
    return Sweep(np.where(fails, np.nan, scores), truth[1:])


def rare(random: Random, n: int, k: int, is_partial: bool) -> Sweep:
    """Change 5% of the questions by 1, for better or worse; those that truly differ only ever lose."""
    truth = -changed(k, is_partial)
    signs = np.where(truth < 0, -1.0, random.choice([-1.0, 1.0], (n, k)))
    found = signs * (random.random((n, k)) < 0.05)
    return _against_nothing(found, truth)


def balanced(random: Random, n: int, k: int, is_partial: bool) -> Sweep:
    """Lose 1 on 2% of the questions and gain 0.1 on 20%: nothing on average, and one-sided where no loss is seen."""
    toss = random.random((n, k))
    found = np.where(toss < 0.02, -1.0, np.where(toss < 0.22, 0.1, 0.0))
    return _against_nothing(found, np.zeros(k))


def _against_nothing(differences: Floats, truth: Floats) -> Sweep:
    """Return a sweep whose baseline scores 0."""
    return Sweep(np.column_stack([np.zeros(len(differences)), differences]), truth)


KINDS: dict[str, Kind] = {
    "demo, vectors with random signs": demo_signs,
    "demo, scores dealt at random": demo_scores,
    **{name.replace("_", " "): partial(made_up, name) for name in ("skewed", "tied", "binary", "reciprocal_rank")},
    "rare changes of 1.0": rare,
    "13 unequal clusters or more, dense": partial(documents, 13),
    "13 unequal clusters or more, lost whole": partial(lost_documents, 13),
    "clusters of four, declared": declared,
    "failures on hard questions": hard_failures,
    "failures on own zeros": partial(own_zeros, "reciprocal_rank", 1.0),
    "failures on half of the own zeros": partial(own_zeros, "binary", 0.5),
}
LIMITS: dict[str, Kind] = {
    "clusters of four, not declared": undeclared,
    "rare losses that many gains balance": balanced,
}
