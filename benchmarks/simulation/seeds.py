"""By how much another seed of the random flips moves an adjusted p-value that is near 0.05.

The aim is 0.006 at most. The package's own number of flips, on the demo's primary family, on all its other metrics as
one family, and on simulated sweeps.
"""

from typing import Any

import numpy as np

from rag_lab.statistics.randomization import ALPHA, smallest_n, step_down
from simulation.demo_scores import Floats, differences
from simulation.family_power import drawn

AIM = 0.006
NEAR = (0.03, 0.07)


def moves(sums: Floats, seeds: range) -> Floats:
    """Return the largest distance between the p-values of two seeds, of each column whose p-value is near 0.05."""
    able = np.count_nonzero(sums, axis=0) >= smallest_n(ALPHA)
    if not able.any():
        return np.zeros(0)
    found = np.array([step_down(sums[:, able], seed).adjusted for seed in seeds])
    middle = np.median(found, axis=0)
    return np.asarray(np.ptp(found, axis=0)[(middle >= NEAR[0]) & (middle <= NEAR[1])])


def of_demo(n_seeds: int, seed: int) -> list[dict[str, Any]]:
    """Return the largest moves in the two families of the demo."""
    every, seeds = np.nan_to_num(differences()), range(seed, seed + n_seeds)
    families = {"demo, primary": every[:, :, 0], "demo, secondary": every[:, :, 1:].reshape(len(every), -1)}
    return [_row(name, [moves(sums, seeds)], n_seeds) for name, sums in families.items()]


def of_sweeps(n: int, k: int, n_sweeps: int, seed: int) -> list[dict[str, Any]]:
    """Return the largest move between two seeds in simulated sweeps."""
    random = np.random.default_rng([seed, n, k])
    found = [moves(drawn(random, n, k)[0][:, :, 0], range(2 * number, 2 * number + 2)) for number in range(n_sweeps)]
    return [_row(f"{n_sweeps} sweeps, {n} questions, {k} variants", found, 2)]


def _row(name: str, found: list[Floats], n_seeds: int) -> dict[str, Any]:
    near = np.concatenate(found)
    largest = float(near.max()) if len(near) else None
    return {"family": name, "seeds": n_seeds, "p-values near 0.05": len(near), "largest move": largest}
