"""How often the 95% intervals hold the truth where few questions differ, and with few clusters of unequal size.

Usage: python benchmarks/interval_coverage.py [--repetitions 1000] [--seed 0]. Prints one JSON object: the
cells, each with its coverage and the median width of its intervals, and those of them that cover less than 0.93. Of
the demo the differences from the baseline, question by question, are resampled whole: what was seen is then the
population, and its mean the truth.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from simulated_scores import FAMILIES, Floats, true_mean
from simulation.demo_scores import scored, variants

from rag_lab.statistics.intervals import mean_intervals, paired_differences

AIM = 0.93
SIZES = (30, 117, 500)
LOST = (0.01, 0.02, 0.05)
LIFT = 0.3
N_CLUSTERS = (4, 5, 6, 8, 10, 13, 20, 40)
REAL = ("retrieval.ndcg@5", "retrieval.mrr@5", "retrieval.evidence_recall@5")
_AT_ONCE = 100  # samples that share their resamples

Draw = Callable[[np.random.Generator], Floats]
Numbers = npt.NDArray[np.int64]
Groups = Sequence[int] | None


def of_differences(draw: Draw, truth: float, repetitions: int, seed: int, groups: Groups = None) -> dict[str, Any]:
    """Return coverage and median width of the intervals of differences within -1..1 that are drawn again and again."""
    ends = []
    for samples, chunk in _drawn(draw, repetitions, seed):
        pairs = [(sample, np.zeros(len(sample))) for sample in samples]
        clusters = None if groups is None else [groups] * len(pairs)
        found = paired_differences(pairs, seed=chunk, clusters=clusters, reach=[1.0] * len(pairs))
        ends += [(one.low, one.high) for one in found]
    return _cell(truth, ends)


def of_means(draw: Draw, truth: float, repetitions: int, seed: int, groups: Groups = None) -> dict[str, Any]:
    """Return the same for the mean of scores within 0..1; the intervals are cut at these ends."""
    ends = []
    for samples, chunk in _drawn(draw, repetitions, seed):
        clusters = None if groups is None else [groups] * len(samples)
        found = mean_intervals(samples, seed=chunk, clusters=clusters, ranges=[(0.0, 1.0)] * len(samples))
        ends += [(max(one.low or 0.0, 0.0), min(one.high or 0.0, 1.0)) for one in found]
    return _cell(truth, ends)


def _drawn(draw: Draw, repetitions: int, seed: int) -> Iterator[tuple[list[Floats], int]]:
    random = np.random.default_rng(seed)
    for start in range(0, repetitions, _AT_ONCE):
        yield [draw(random) for _ in range(min(_AT_ONCE, repetitions - start))], seed + start


def _cell(truth: float, ends: Sequence[tuple[float | None, float | None]]) -> dict[str, Any]:
    low, high = np.array(ends, dtype=float).T
    covered = float(((low <= truth + 1e-9) & (truth - 1e-9 <= high)).mean())
    return {"truth": round(truth, 4), "coverage": covered, "width": round(float(np.median(high - low)), 4)}


def sparse(repetitions: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the cells of a loss of 1.0 on few questions, and of a mean that is 1.0 but for these."""
    for share in LOST:
        for n in SIZES:
            lost = of_differences(partial(_lost, share, n), -share, repetitions, seed)
            yield {"what": f"difference, a loss of 1.0 on {share:.0%}", "questions": n, **lost}
            right = of_means(partial(_right, share, n), 1 - share, repetitions, seed)
            yield {"what": f"mean, 0 on {share:.0%} and else 1", "questions": n, **right}


def _lost(share: float, n: int, random: np.random.Generator) -> Floats:
    return np.where(random.random(n) < share, -1.0, 0.0)


def _right(share: float, n: int, random: np.random.Generator) -> Floats:
    return 1.0 + _lost(share, n, random)


def dense(repetitions: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the cells of the shapes of `simulated_scores`, with a true difference."""
    for name in ("skewed", "tied", "binary", "reciprocal_rank"):
        truth = true_mean(FAMILIES[name], LIFT) - true_mean(FAMILIES[name], 0.0)
        for n in SIZES:
            found = of_differences(partial(_lifted, name, n), truth, repetitions, seed)
            yield {"what": f"difference, {name}", "questions": n, **found}


def _lifted(name: str, n: int, random: np.random.Generator) -> Floats:
    scores = FAMILIES[name](random, n, np.array([0.0, LIFT]))
    return np.asarray(scores[:, 1] - scores[:, 0])


def real(repetitions: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the cells of the differences of the demo's variants from its baseline."""
    for metric in REAL:
        scores = scored(metric)
        for name, column in zip(variants()[1:], (scores[:, 1:] - scores[:, :1]).T, strict=True):
            if np.abs(column).max() < 1e-9:
                continue
            share = f"{np.count_nonzero(np.abs(column) > 1e-9)} of {len(column)}"
            for n in SIZES:
                found = of_differences(partial(_resampled, column, n), float(column.mean()), repetitions, seed)
                yield {"what": f"{metric} {name}", "apart": share, "questions": n, **found}


def _resampled(column: Floats, n: int, random: np.random.Generator) -> Floats:
    return random.choice(column, n)


def sizes(kind: str, n_clusters: int) -> Numbers:
    """Return the number of questions of each cluster: all of 10, 1 to 20, 1 to 60, or one as large as all others."""
    held = {
        "equal": np.full(n_clusters, 10),
        "linear": np.linspace(1, 20, n_clusters),
        "geometric": np.geomspace(1, 60, n_clusters),
        "one_large": np.append(np.full(n_clusters - 1, 3), 3 * (n_clusters - 1)),
    }
    return np.round(held[kind]).astype(np.int64)


def clustered(repetitions: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the cells of few clusters: dense, and with losses that strike documents more or less, or as a whole."""
    for kind in ("equal", "linear", "geometric", "one_large"):
        for n_clusters in N_CLUSTERS:
            groups = np.repeat(np.arange(n_clusters), sizes(kind, n_clusters))
            for what, (measured, draw, truth) in _CLUSTERED.items():
                found = measured(partial(draw, groups), truth, repetitions, seed, groups.tolist())
                yield {"what": what, "clusters": n_clusters, "sizes": kind, **found}


def _dense_mean(groups: Numbers, random: np.random.Generator) -> Floats:
    ability = random.beta(3, 2, groups.max() + 1)[groups]
    return np.asarray(random.beta(4 * ability, 4 * (1 - ability)))


def _binary_mean(groups: Numbers, random: np.random.Generator) -> Floats:
    return np.asarray(1.0 * (random.random(len(groups)) < random.beta(1.8, 0.2, groups.max() + 1)[groups]))


def _dense_difference(groups: Numbers, random: np.random.Generator) -> Floats:
    ours, theirs = (random.beta(6 - side, 4 + side, groups.max() + 1)[groups] for side in (0, 1))
    return np.asarray(random.beta(4 * ours, 4 * (1 - ours)) - random.beta(4 * theirs, 4 * (1 - theirs)))


def _losses(groups: Numbers, random: np.random.Generator) -> Floats:
    return np.asarray(-1.0 * (random.random(len(groups)) < random.beta(0.2, 1.8, groups.max() + 1)[groups]))


def _lost_documents(groups: Numbers, random: np.random.Generator) -> Floats:
    return np.asarray(-1.0 * (random.random(groups.max() + 1) < 0.1)[groups])


_CLUSTERED: dict[str, tuple[Any, Any, float]] = {
    "mean, dense": (of_means, _dense_mean, 0.6),
    "mean, 0 or 1": (of_means, _binary_mean, 0.9),
    "difference, dense": (of_differences, _dense_difference, 0.1),
    "difference, losses of 1.0 on 10%": (of_differences, _losses, -0.1),
    "difference, 10% of documents lost": (of_differences, _lost_documents, -0.1),
}


def cells(repetitions: int, seed: int) -> list[dict[str, Any]]:
    """Return all cells."""
    return [cell for study in STUDIES for cell in study(repetitions, seed)]


STUDIES = (sparse, dense, clustered, real)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1000, help="samples a cell, a multiple of 50")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = cells(given.repetitions, given.seed)
    below = [cell for cell in found if cell["coverage"] < AIM]
    print(json.dumps({"repetitions": given.repetitions, "cells": found, "below": below}))


if __name__ == "__main__":
    main()
