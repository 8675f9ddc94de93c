"""How often the interval of labels and judge holds the truth, how wide it is, and how often it names the better one.

Two variants answer questions of which some are hard for both, and often alike; people find an answer good or bad. Some
questions are labelled as `rag-lab labels ask` draws them. Judges: `perfect`, `good` (sees it through noise), `biased`
(as good, and kinder to the worse variant), `random`. `clustered`: questions in fours, whose hardness is partly shared.
Prints JSON: by cell the coverage of labels alone and of both (95% is meant), the mean width of both over that of labels
alone, and how often the sign of the difference is right by the judge alone, labels alone, and both.
"""

import argparse
import json

import numpy as np
import numpy.typing as npt

from rag_lab.statistics.prediction_powered import corrected_mean

Floats = npt.NDArray[np.float64]
GOOD = (0.70, 0.58)  # of the middle question, by the better and the worse variant
SAME = 0.35  # of questions with the same answer by both
KINDNESS = 0.25  # of the biased judge to the worse variant
N_TRUTH = 400_000


def answers(random: np.random.Generator, n: int, clustered: bool) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Return whether each answer is good, of the better and the worse variant, and where both are the same."""
    shared = np.repeat(random.normal(0, 0.8, -(-n // 4)), 4)[:n] if clustered else 0.0
    hard = shared + random.normal(0, 0.6 if clustered else 1.0, n)
    first, second = ((random.random(n) < 1 / (1 + np.exp(-(np.log(p / (1 - p)) + hard)))) * 1.0 for p in GOOD)
    same = random.random(n) < SAME
    return np.where(same, second, first), second, same


def judged(
    random: np.random.Generator, kind: str, first: Floats, second: Floats, same: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Return a judge's scores of both; the same answer has the same score."""
    if kind == "perfect":
        return first, second
    if kind == "random":
        one, other = random.random((2, len(first)))
    else:
        one, other = (np.clip(0.25 + 0.5 * good + random.normal(0, 0.2, len(good)), 0, 1) for good in (first, second))
        other = other + KINDNESS * (kind == "biased")
    return np.where(same, other, one), other


def draw(
    random: np.random.Generator, apart: Floats, same: npt.NDArray[np.bool_], n_labels: int
) -> tuple[npt.NDArray[np.str_], npt.NDArray[np.bool_]]:
    """Return strata and what is labelled with `n_labels` ratings, as `LabelledPair.ask` draws."""
    far = ~same & (apart > np.median(apart[~same]))
    strata = np.where(same, "same", np.where(far, "far", "close"))
    labelled, sizes = same.copy(), {"close": (~same & ~far).sum(), "far": 1.5 * far.sum()}
    n_same = min(round(n_labels / 6), int(same.sum()))
    for name, size in sizes.items():
        of_stratum = random.permutation(np.flatnonzero(strata == name))
        labelled[of_stratum[: round((n_labels - n_same) / 2 * size / sum(sizes.values()))]] = True
    return strata, labelled


def cell(kind: str, clustered: bool, n: int, n_labels: int, trials: int) -> dict[str, object]:
    """Return what a kind of judge comes to on `n` questions with `n_labels` labels."""
    random = np.random.default_rng([n, n_labels, clustered, len(kind)])
    everything = answers(np.random.default_rng(1), N_TRUTH, clustered)
    truth = float((everything[0] - everything[1]).mean())
    held, width, right = np.zeros(2), np.zeros(2), np.zeros(3)
    clusters = [place // 4 for place in range(n)] if clustered else None
    for _ in range(trials):
        first, second, same = answers(random, n, clustered)
        one, other = judged(random, kind, first, second, same)
        strata, labelled = draw(random, np.abs(one - other), same, n_labels)
        labels = np.where(labelled, first - second, np.nan)
        right[0] += _sign((one - other).mean())
        for place, weight in enumerate((0.0, None)):
            found = corrected_mean(one - other, labels, 1.0, strata.tolist(), clusters, weight)
            low, high, mean = found.low or 0.0, found.high or 0.0, found.mean or 0.0
            held[place] += low <= truth <= high
            width[place] += high - low
            right[place + 1] += _sign(mean)
    return {
        "judge": kind, "clustered": clustered, "questions": n, "labels": n_labels,
        "covers": {"labels": held[0] / trials, "both": held[1] / trials}, "width": round(width[1] / width[0], 3),
        "right": {name: right[place] / trials for place, name in enumerate(("judge", "labels", "both"))},
    }  # fmt: skip


def _sign(mean: float) -> float:
    """Return 1 for the right sign, and a half where nothing is said."""
    return 0.5 if abs(mean) < 1e-12 else float(mean > 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000, help="of each cell")
    trials = parser.parse_args().trials
    found = [
        cell(kind, clustered, n, n_labels, trials)
        for clustered in (False, True)
        for n, n_labels in ((100, 30), (300, 30), (300, 60), (300, 120))
        for kind in ("perfect", "good", "biased", "random")
    ]
    print(json.dumps({"benchmark": "judge_correction", "trials": trials, "cells": found}, indent=1))


if __name__ == "__main__":
    main()
