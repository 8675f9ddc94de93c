"""Check what a race claims on data whose truth is known: whom it drops, false winners, how good the winner is, savings.

Usage: python benchmarks/racing.py [--races 1000] [--seed 0] [--run RUN_DIR]. Prints one JSON object.

A race draws its rounds and its proof from one sample of questions, drops by the bound of the package and tests the
winner against the baseline by the package's sign flips. `best_dropped`: how often the variant with the best true mean
was dropped, which is to be at most 5%. `equal`: all variants are the same but for chance; a proof that
calls the winner better or worse has named a falsehood, which may happen in 5% of races. `spread`: the lifts are spread
evenly; the winner is good where its true mean is at most 0.02 below the best's. With `--run` the questions are those of
a run of one's own, resampled whole; for `equal` the variants of each question change places at random.
"""

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from simulated_scores import FAMILIES, Family, Floats, true_mean
from simulation.false_winners import is_apart

from rag_lab.experiment.built_in_designs import RaceConfig
from rag_lab.experiment.questions import SHARES
from rag_lab.runs.run_folder import RunFolder
from rag_lab.statistics.bounded_mean import is_above
from rag_lab.statistics.randomization import step_down

N_VARIANTS = (8, 16, 32)  # with the baseline
N_QUESTIONS = (117, 400)
NEAR = 0.02
TOP_LIFT = 0.3
NAMES = ("skewed", "tied", "reciprocal_rank")
_FLIPS = 4_000
_AT_ONCE = 100  # races share flips, so that many groups average over them


@dataclass(frozen=True)
class Race:
    """One simulated race: who won, and the differences of its proof."""

    winner: int
    proof: Floats
    dropped: tuple[int, ...]
    asked: int  # how often a variant was asked a question
    best_of_all: int  # by its mean over all questions, as a full sweep would choose


def race(scores: Floats, sizes: tuple[int, ...]) -> Race:
    """Race the columns of an (n, k) table, the first the baseline, in rounds of its first rows."""
    n, k = scores.shape
    left, asked, before = list(range(k)), 0, 0
    for size in sizes:
        asked, before = asked + len(left) * (size - before), size
        seen = scores[:size]
        means = seen.mean(axis=0)
        worse = {one for one in left[1:] if any(_is_ahead(seen, means, other, one, sizes) for other in left)}
        left = [one for one in left if one not in worse]
        if len(left) <= 2:
            break
    winner = max(left[1:] or range(1, k), key=lambda one: (means[one], -one))
    proof = scores[before:]
    best = 1 + int(np.argmax(scores[:, 1:].mean(axis=0)))
    dropped = tuple(one for one in range(1, k) if one not in left)
    return Race(winner, proof[:, winner] - proof[:, 0], dropped, asked + 2 * (n - before), best)


def _is_ahead(seen: Floats, means: Floats, first: int, other: int, sizes: tuple[int, ...]) -> bool:
    if means[first] <= means[other]:
        return False
    return is_above(seen[:, first] - seen[:, other], 0.0, 1.0, RaceConfig().error / (seen.shape[1] - 1), sizes)


def cell(tables: list[Floats], means: Floats, sizes: tuple[int, ...], seed: int) -> dict[str, Any]:
    """Return what the races of these tables come to; `means` are the true ones, a row a table."""
    k = tables[0].shape[1]
    races = [race(table, sizes) for table in tables]
    p_values = _p_values(np.column_stack([one.proof for one in races]), seed)
    p_values[[not is_apart(one.proof) for one in races]] = 1.0
    signs = np.array([np.sign(one.proof.sum()) for one in races])
    lost = means.max(axis=1) - np.array([row[one.winner] for row, one in zip(means, races, strict=True)])
    by_all = means.max(axis=1) - np.array([row[one.best_of_all] for row, one in zip(means, races, strict=True)])
    return {
        "called_better": _share((p_values < 0.05) & (signs > 0)),
        "called_worse": _share((p_values < 0.05) & (signs < 0)),
        "good_winner": _share(lost <= NEAR + 1e-12),
        "good_winner_of_a_full_sweep": _share(by_all <= NEAR + 1e-12),
        "mean_loss": round(float(lost.mean()), 4),
        "dropped": round(float(np.mean([len(one.dropped) for one in races])), 2),
        "best_dropped": _share([_lost_best(one, row) for one, row in zip(races, means, strict=True)]),
        "saved": round(1 - float(np.mean([one.asked for one in races])) / (k * len(tables[0])), 3),
    }


def _p_values(proofs: Floats, seed: int) -> Floats:
    """Return the p-value of each proof, a column, as the one comparison that it is."""
    groups = np.array_split(proofs, -(-proofs.shape[1] // _AT_ONCE), axis=1)
    return np.concatenate([step_down(one, seed + number, _FLIPS).alone for number, one in enumerate(groups)])


def _lost_best(one: Race, means: Floats) -> bool:
    """Tell whether every variant with the best true mean was dropped."""
    best = np.flatnonzero(means >= means.max() - 1e-12)
    return bool(len(one.dropped)) and set(best.tolist()) <= set(one.dropped)


def made_up(family: Family, n: int, k: int, n_races: int, top: float, seed: int) -> tuple[list[Floats], Floats]:
    """Return (n, k) tables with lifts spread from 0, the baseline's, to `top`, and their true means."""
    random = np.random.default_rng(seed)
    lifts = [np.concatenate([[0.0], random.permutation(np.linspace(0, top, k - 1))]) for _ in range(n_races)]
    tables = [family(random, n, row) for row in lifts]
    return tables, np.array([[true_mean(family, round(float(lift), 9)) for lift in row] for row in lifts])


def resampled(values: Floats, n: int, k: int, n_races: int, equal: bool, seed: int) -> tuple[list[Floats], Floats]:
    """Return tables of whole questions drawn again from a run, and their true means."""
    random = np.random.default_rng(seed)
    tables, means = [], []
    for _ in range(n_races):
        columns = random.integers(0, values.shape[1], k)
        table = values[random.integers(0, len(values), n)][:, columns]
        tables.append(random.permuted(table, axis=1) if equal else table)
        true = values.mean(axis=0)[columns]
        means.append(np.full(k, true.mean()) if equal else true)
    return tables, np.array(means)


def values_of(run: Path, metric: str | None = None) -> Floats:
    """Return an (n, k) table of a run's scores in its main metric, over the questions that all variants have."""
    folder = RunFolder.open(run)
    scores = folder.scores()
    wanted = scores[(scores["metric"] == (metric or folder.metrics[0])) & (scores["status"] == "scored")]
    table = wanted.pivot_table(index="question_id", columns="variant_id", values="value", aggfunc="mean").dropna()
    return table.to_numpy(dtype=float)


def sizes_for(n: int, shares: tuple[float, ...] = SHARES) -> tuple[int, ...]:
    """Return the rounds for `n` questions."""
    return tuple(round(share * n) for share in shares)


def main() -> None:
    """Print the cells as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--races", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--run", type=Path, help="a run folder whose questions are resampled, too")
    options.add_argument("--shares", type=float, nargs="*", default=list(SHARES), help="of the questions, in rounds")
    given = options.parse_args()
    start = time.perf_counter()
    found: dict[str, Any] = {"races": given.races, "shares": given.shares, "equal": {}, "spread": {}}
    shares = tuple(given.shares)
    for n in N_QUESTIONS:
        for k in N_VARIANTS:
            sizes, place = sizes_for(n, shares), f"{k} variants, {n} questions"
            for kind, top in (("equal", 0.0), ("spread", TOP_LIFT)):
                cells = {
                    name: cell(*made_up(FAMILIES[name], n, k, given.races, top, given.seed), sizes, given.seed)
                    for name in NAMES
                }
                if given.run:
                    tables = resampled(values_of(given.run), n, k, given.races, kind == "equal", given.seed)
                    cells["run"] = cell(*tables, sizes, given.seed)
                found[kind][place] = cells
    print(json.dumps(found | {"seconds": round(time.perf_counter() - start, 1)}, indent=2))


def _share(flags: Any) -> float:
    return round(float(np.mean(flags)), 4)


if __name__ == "__main__":
    main()
