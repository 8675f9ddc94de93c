"""How often the interval of a judge's area under the ROC curve holds the true area; prints JSON.

Judges of known quality score the right answer and the wrong ones of 5 to 50 questions: scores that are continuous, or 0
and 1 only; questions that are hard for right and wrong answers alike; wrong answers to one question that are scored
alike. `one_sided` is the hardest kind there is: nothing but whether a question's right answer is believed decides, so
that every miss is a whole question. Target: at least 93% of intervals hold the truth, in every kind but that one.
Beside it stands what a bootstrap over questions covers.
"""

import argparse
import json
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from rag_lab.statistics.shares import Cluster, auc_interval

QUESTIONS = (5, 8, 10, 15, 20, 50)
AREAS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
N_WRONG = (1, 5)
N_RESAMPLES = 500

Floats = npt.NDArray[np.float64]
Scores = tuple[Floats, Floats]  # (n,) of right answers, (n, wrong answers to each) of wrong ones
Judge = Callable[[np.random.Generator, float, int, int], Scores]


def continuous(random: np.random.Generator, area: float, n: int, wrong: int) -> Scores:
    """Normal scores, the right ones higher."""
    return random.normal(_lift(area), 1, n), random.normal(0, 1, (n, wrong))


def hard_questions(random: np.random.Generator, area: float, n: int, wrong: int) -> Scores:
    """Normal scores, half of their variance the question's."""
    hard, own = random.normal(0, np.sqrt(0.5), n), np.sqrt(0.5)
    return hard + random.normal(_lift(area), own, n), hard[:, None] + random.normal(0, own, (n, wrong))


def alike(random: np.random.Generator, area: float, n: int, wrong: int) -> Scores:
    """Normal scores; the wrong answers to one question correlate by 0.9."""
    shared = random.normal(0, np.sqrt(0.9), (n, 1))
    return random.normal(_lift(area), 1, n), shared + random.normal(0, np.sqrt(0.1), (n, wrong))


def zero_or_one(random: np.random.Generator, area: float, n: int, wrong: int) -> Scores:
    """Verdicts that fall on right and wrong answers as often."""
    return (random.random(n) < area) * 1.0, (random.random((n, wrong)) > area) * 1.0


def too_kind(random: np.random.Generator, area: float, n: int, wrong: int) -> Scores:
    """Verdicts that pass every right answer, and all the wrong ones of some questions."""
    passed = random.random((n, 1)) < 2 - 2 * area
    return np.ones(n), np.repeat(passed * 1.0, wrong, axis=1)


def one_sided(random: np.random.Generator, area: float, n: int, wrong: int) -> Scores:
    """Wrong answers have one score, above those right ones that are not believed."""
    return (random.random(n) < area) * 2.0, np.ones((n, wrong))


JUDGES: dict[str, Judge] = {
    judge.__name__: judge for judge in (continuous, hard_questions, alike, zero_or_one, too_kind, one_sided)
}


def covers(judge: Judge, area: float, n: int, wrong: int, trials: int, seed: int = 0) -> tuple[float, float]:
    """Return the share of the trials whose interval holds the true area, and that of a bootstrap over questions."""
    random = np.random.default_rng([seed, n, wrong, round(100 * area)])
    held = np.zeros(2)
    for _ in range(trials):
        right, wrongs = judge(random, area, n, wrong)
        clusters: list[Cluster] = [([float(r)], row.tolist()) for r, row in zip(right, wrongs, strict=True)]
        found = auc_interval(clusters)
        low, high = resampled(clusters, random)
        held += [(found.low or 0.0) <= area <= (found.high or 0.0), low <= area <= high]
    return float(held[0] / trials), float(held[1] / trials)


def resampled(clusters: Sequence[Cluster], random: np.random.Generator) -> tuple[float, float]:
    """Return the percentile interval of a bootstrap over questions."""
    right = np.array([cluster[0][0] for cluster in clusters])
    wrong = np.array([list(cluster[1]) for cluster in clusters])
    difference = right[:, None, None] - wrong[None]
    won = ((difference > 0) + (difference == 0) / 2).mean(axis=2)
    n = len(won)
    weights = random.multinomial(n, np.full(n, 1 / n), size=N_RESAMPLES).astype(float)
    low, high = np.quantile(((weights @ won) * weights).sum(axis=1) / n**2, [0.025, 0.975])
    return float(low), float(high)


def _lift(area: float) -> float:
    """Return by how much normal scores must differ; an area of 1 is all but reached."""
    return float(np.sqrt(2) * ndtri(min(area, 1 - 1e-9)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=500, help="of each kind, area and number of questions")
    options = parser.parse_args()
    found = {}
    for name, judge in JUDGES.items():
        cells = [
            (n, *covers(judge, area, n, wrong, options.trials))
            for n in QUESTIONS
            for area in AREAS
            for wrong in N_WRONG
        ]
        found[name] = {
            "lowest": {n: min(ours for size, ours, _ in cells if size == n) for n in QUESTIONS},
            "lowest_bootstrap": {n: min(other for size, _, other in cells if size == n) for n in QUESTIONS},
        }
    usual = [share for name, each in found.items() if name != "one_sided" for share in each["lowest"].values()]
    print(
        json.dumps({"benchmark": "judge_intervals", "trials": options.trials, "lowest": min(usual)} | found, indent=2)
    )


if __name__ == "__main__":
    main()
