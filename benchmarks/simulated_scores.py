"""Simulated scores with known truth, shaped like those of a RAG evaluation: skewed, tied, binary, missing, clustered.

Each family returns (n questions, k variants) scores in [0, 1]; a question's difficulty is shared by the variants, all
else is drawn anew. `lifts` (k,) moves each variant by that share of the way from its difficulty to 1: with lifts of
zero, all variants are the same and what differs is chance.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Family = Callable[[np.random.Generator, int, Floats], Floats]
QUESTIONS_PER_DOCUMENT = 4


def _ability(difficulty: Floats, lifts: Floats) -> Floats:
    return difficulty + (1 - difficulty) * lifts


def skewed(random: np.random.Generator, n: int, lifts: Floats) -> Floats:
    """Like faithfulness or a similarity: continuous, piled up near 1 with a long tail below."""
    ability = _ability(random.beta(2, 1, (n, 1)), lifts)
    return random.beta(4 * ability + 0.3, 2 * (1 - ability) + 0.3)


def tied(random: np.random.Generator, n: int, lifts: Floats) -> Floats:
    """Like recall over four pieces of evidence: few values, and the same score under both for most questions."""
    difficulty = random.beta(1.2, 0.8, (n, 1))
    usual = random.binomial(4, difficulty, (n, 1)) / 4
    changed = random.binomial(4, _ability(difficulty, lifts)) / 4
    return np.where(random.random((n, len(lifts))) < 0.3, changed, usual)


def binary(random: np.random.Generator, n: int, lifts: Floats) -> Floats:
    """Like a hit or a correct answer: 0 or 1, three quarters of them 1."""
    return (random.random((n, len(lifts))) < _ability(random.beta(1.6, 0.5, (n, 1)), lifts)).astype(float)


def reciprocal_rank(random: np.random.Generator, n: int, lifts: Floats) -> Floats:
    """Like reciprocal rank at 10: 1, 1/2, 1/3, ..., 0."""
    ability = _ability(random.beta(1.0, 0.8, (n, 1)), lifts)
    rank = random.geometric(np.clip(ability, 0.05, 1))
    return np.where(rank <= 10, 1 / rank, 0.0)


def missing(random: np.random.Generator, n: int, lifts: Floats) -> Floats:
    """Skewed scores of which 15% are missing (NaN), not the same ones under each variant."""
    scores = skewed(random, n, lifts)
    return np.where(random.random(scores.shape) < 0.15, np.nan, scores)


def clustered(random: np.random.Generator, n: int, lifts: Floats) -> Floats:
    """Four questions a document, and each variant suits some documents more than others."""
    documents = -(-n // QUESTIONS_PER_DOCUMENT)
    suits = np.repeat(random.normal(0, 0.15, (documents, len(lifts))), QUESTIONS_PER_DOCUMENT, axis=0)[:n]
    difficulty = np.repeat(random.beta(2, 2, (documents, 1)), QUESTIONS_PER_DOCUMENT, axis=0)[:n]
    noise = random.normal(0, 0.15, (n, len(lifts)))
    return np.asarray(_ability(difficulty, lifts) + suits + noise)  # not clipped, so that the true means are known


FAMILIES: dict[str, Family] = {
    family.__name__: family for family in (skewed, tied, binary, reciprocal_rank, missing, clustered)
}


def documents_of(n: int) -> list[int]:
    """Return the document of each question of the `clustered` family."""
    return [question // QUESTIONS_PER_DOCUMENT for question in range(n)]


@cache
def true_mean(family: Family, lift: float) -> float:
    """Return the mean of `family` at `lift`, to about 0.0003, by drawing a million scores."""
    random = np.random.default_rng(12345)
    return float(np.mean([np.nanmean(family(random, 100_000, np.array([lift]))) for _ in range(10)]))
