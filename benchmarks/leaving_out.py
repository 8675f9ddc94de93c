"""Check "not worse by more than the margin" and its planning on difference vectors of the demo, resampled whole.

Usage: python benchmarks/leaving_out.py [--sweeps 1000] [--seed 0]. Prints one JSON object.

False statements: every variant loses exactly the margin, so whatever is said to be not worse by more is false; that may
happen in 5% of sweeps of a family. Planning: at the questions that a pilot names, 75% to 90% of reruns should say it.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from simulation.demo_scores import vectors

from rag_lab.statistics.bounded_mean import p_mean_about, p_not_worse
from rag_lab.statistics.non_inferiority import LEAST_DIFFERING, for_margin
from rag_lab.statistics.randomization import hommel

FAMILIES = (7, 15, 31)
SIZES = (30, 117, 500)
RATES = (0.01, 0.02, 0.05)
MARGIN = 0.05
_COLUMNS = 2_000  # tested at once
_CLEAR = 0.2  # an approximate p-value above it is not below 0.05

Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Floats]  # (generator, questions, variants) to differences


def real_vectors() -> Floats:
    """Return the differences from the baseline of the demo's variants where six questions differ, centred, (q, k)."""
    able = vectors()[:, np.count_nonzero(vectors(), axis=0) >= 6]
    return np.asarray(able - able.mean(axis=0))


def resampled(vectors: Floats, random: np.random.Generator, n: int, k: int) -> Floats:
    """Return n questions, drawn whole, of k of the vectors."""
    chosen = random.choice(vectors.shape[1], k, replace=k > vectors.shape[1])
    return vectors[random.integers(0, len(vectors), n)][:, chosen]


def losers(vectors: Floats, rate: float) -> dict[str, Draw]:
    """Return ways to lose `rate`, the margin, on average: all at once on few questions, or evenly on all."""

    def rare(random: np.random.Generator, n: int, k: int) -> Floats:
        return -(random.random((n, k)) < rate).astype(np.float64)

    def rare_in_real(random: np.random.Generator, n: int, k: int) -> Floats:
        return np.where(random.random((n, k)) < rate, -1.0, resampled(vectors, random, n, k))

    def even(random: np.random.Generator, n: int, k: int) -> Floats:
        return resampled(vectors, random, n, k) - rate

    def one_rare(random: np.random.Generator, n: int, k: int) -> Floats:
        differences = 0.2 * resampled(vectors, random, n, k)  # so alike that all others are found to be not worse
        differences[:, 0] = -(random.random(n) < rate).astype(np.float64)
        return differences

    return {"rare": rare, "rare_in_real": rare_in_real, "even": even, "one_rare": one_rare}


def p_values(differences: list[Floats], margin: float) -> Floats:
    """Return the p-values of sweeps of equal size, (sweeps, variants)."""
    k = differences[0].shape[1]
    at_once, found = max(1, _COLUMNS // k), []
    for start in range(0, len(differences), at_once):
        columns = np.hstack(differences[start : start + at_once])
        p = p_mean_about(columns + margin, np.ones_like(columns), np.full(columns.shape[1], margin - 1))
        near = p < _CLEAR
        p[near] = p_not_worse(columns[:, near], np.ones(len(columns)), margin, 1.0)
        found.append(p.reshape(-1, k))
    return np.vstack(found)


def corrected(found: Floats) -> Floats:
    """Return the p-values corrected in each sweep."""
    return np.array([hommel(row) for row in found.tolist()], dtype=np.float64)


def false_statements(vectors: Floats, way: str, rate: float, n: int, n_sweeps: int, seed: int) -> list[dict[str, Any]]:
    """Return a row each family: the share of sweeps, and of single variants alone, with a false statement."""
    random = np.random.default_rng([seed, n, int(1000 * rate), len(way)])
    draw = losers(vectors, rate)[way]
    found = p_values([draw(random, n, max(FAMILIES)) for _ in range(n_sweeps)], rate)
    false = slice(0, 1) if way == "one_rare" else slice(None)
    rows = []
    for size in FAMILIES:
        said = corrected(found[:, :size])[:, false] < 0.05
        shares = {"family": float(said.any(axis=1).mean()), "single": float((found[:, false] < 0.05).mean())}
        rows.append({"losses": way, "margin": rate, "questions": n, "variants": size, "sweeps": n_sweeps} | shares)
    return rows


def lost_clusters(n_clusters: int, n_sweeps: int, seed: int) -> dict[str, Any]:
    """Return the share of false statements where 10% of clusters of unequal size lose everything, the margin."""
    random, false = np.random.default_rng([seed, n_clusters]), 0
    for _ in range(n_sweeps):
        counts = random.geometric(0.25, n_clusters).astype(np.float64)
        sums = -counts * (random.random(n_clusters) < 0.1)
        false += bool(p_not_worse(sums[:, None], counts, 0.1, 1.0)[0] < 0.05)
    return {"losses": "clusters", "margin": 0.1, "clusters": n_clusters, "sweeps": n_sweeps, "single": false / n_sweeps}


def power(vectors: Floats, sd: float, n: int, n_sweeps: int, seed: int) -> list[dict[str, Any]]:
    """Return how often it is said of variants that lose nothing, alone and in families, with differences of this SD."""
    random = np.random.default_rng([seed, n])
    scaled = vectors / vectors.std(axis=0) * sd
    found = p_values([resampled(scaled, random, n, max(FAMILIES)) for _ in range(n_sweeps)], MARGIN)
    rows = [{"variants": 1, "power": float((found < 0.05).mean())}]
    rows += [{"variants": k, "power": float((corrected(found[:, :k]) < 0.05).mean())} for k in FAMILIES[:2]]
    return [{"margin": MARGIN, "questions": n, "sd": sd, "sweeps": n_sweeps} | row for row in rows]


def planned(vectors: Floats, size: int, k: int, n_pilots: int, n_reruns: int, seed: int) -> dict[str, Any]:
    """Return how often the statement comes in reruns with the questions that pilots of `size` questions name."""
    random, comes, asked = np.random.default_rng([seed, size, k]), [], []
    for number in range(n_pilots):
        truth = vectors[:, random.choice(vectors.shape[1], k, replace=k > vectors.shape[1])]
        pilot = truth[random.integers(0, len(truth), size)]
        plans = for_margin(pilot, np.ones_like(pilot), MARGIN, np.ones(k), size, seed=number)
        is_tie = np.abs(pilot - np.median(pilot, axis=0)) < 1e-9
        for place in np.flatnonzero((~is_tie).sum(axis=0) >= LEAST_DIFFERING)[:3]:
            n = plans[place].needed[0]
            if n is None or n > 5_000:
                continue
            asked.append(n)
            drawn = np.hstack([truth[random.integers(0, len(truth), n)] for _ in range(n_reruns)])
            worst = np.full(drawn.shape[1], MARGIN - 1)
            found = p_mean_about(drawn + MARGIN, np.ones_like(drawn), worst).reshape(n_reruns, k)
            comes.append(float((corrected(found)[:, place] < 0.05).mean()))
    return {
        "pilot": size,
        "variants": k,
        "plans": len(comes),
        "questions": int(np.median(asked)),
        "comes": float(np.mean(comes)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=1000, help="sweeps a cell")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    started = time.perf_counter()
    real = real_vectors()
    cells = [(way, rate, n) for way in losers(real, 0.0) for rate in RATES for n in SIZES]
    result: dict[str, Any] = {
        "vectors": real.shape[1],
        "false_statements": [row for cell in cells for row in false_statements(real, *cell, given.sweeps, given.seed)],
        "clusters": [lost_clusters(n, given.sweeps, given.seed) for n in (13, 40, 100)],
        "power": power(real, 0.15, 117, given.sweeps, given.seed),
        "planned": [
            planned(real, size, k, max(10, given.sweeps // (20 if k == 1 else 50)), 40, given.seed)
            for size in (40, 117)
            for k in (1, 7, 15)
        ],
    }
    result["seconds"] = round(time.perf_counter() - started, 1)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
