"""How often a sweep names a false winner in its primary family: where no variant differs, and where half of them do.

The aim is 0.065 at most. A false winner is a variant that is called better or worse and is not. The test is the
package's, with 999 flips.
"""

from typing import Any

import numpy as np
import pandas as pd

from rag_lab.statistics.families import Hypothesis, Options, answers
from rag_lab.statistics.intervals import ENOUGH_DIFFERING, student_bounds, units
from rag_lab.statistics.randomization import ALPHA, smallest_n, step_down
from rag_lab.statistics.summaries import SHARE
from simulation.sweeps import KINDS, LIMITS, Floats, Numbers, Sweep

AIM = 0.065
SIZES = (30, 117, 500)
FAMILIES = (7, 15, 31)
_FLIPS = 999


def findings(sweep: Sweep, seed: int, n_flips: int = _FLIPS) -> tuple[Floats, Floats]:
    """Return (k,) 1 for each variant that is called better, -1 for worse, by the rules of `statistics.families`.

    The second has those that would be called so without the guard for failures.
    """
    sums = sums_of(sweep.differences, sweep.groups)
    able = np.count_nonzero(sums, axis=0) >= smallest_n(ALPHA)
    signs, is_found = np.sign(sums.sum(axis=0)), np.zeros(len(able), dtype=bool)
    if not able.any():
        return signs * is_found, signs * is_found
    is_found[able] = step_down(sums[:, able], seed, n_flips).adjusted < ALPHA
    is_found[is_found] = [is_apart(values, sweep.groups) for values in sweep.differences[:, is_found].T]
    failed = np.isnan(sweep.differences).any(axis=0)
    if not failed[able].any():
        return signs * is_found, signs * is_found
    filled, stands = np.where(failed, sums_of(sweep.filled, sweep.groups), sums), ~failed
    again = step_down(filled[:, able], seed, n_flips).adjusted < ALPHA
    stands[able] |= again & (np.sign(filled.sum(axis=0)) == signs)[able]
    return signs * (is_found & stands), signs * is_found


def is_apart(values: Floats, groups: Numbers | None = None) -> bool:
    """Tell whether the interval of a mean leaves out zero; Student's where the package resamples 30 units or more."""
    there = np.isfinite(values)
    column = units(values[there], None if groups is None else groups[there].tolist())
    low, high = student_bounds(column, 1 - ALPHA)
    if np.count_nonzero(column.sums) < ENOUGH_DIFFERING:
        low = min(low, student_bounds(column.with_one_more(-1.0), 1 - ALPHA)[0])
        high = max(high, student_bounds(column.with_one_more(1.0), 1 - ALPHA)[1])
    return low > 0 or high < 0


def sums_of(values: Floats, groups: Numbers | None) -> Floats:
    """Return (units, k) sums of the differences of each question or cluster, 0 where there is none."""
    there = np.nan_to_num(values)
    if groups is None:
        return there
    summed = np.eye(groups.max() + 1)[:, groups] @ there
    return np.where(np.abs(summed) <= 1e-9, 0.0, summed)


def false_winners(kind: str, is_partial: bool, n: int, n_sweeps: int, seed: int) -> list[dict[str, Any]]:
    """Return a row a family: the share of sweeps with a false winner, and how often what truly differs is found."""
    random = np.random.default_rng([seed, n, len(kind), is_partial])
    false, unguarded, seen = np.zeros(len(FAMILIES)), np.zeros(len(FAMILIES)), np.zeros(len(FAMILIES))
    for number in range(n_sweeps):
        sweep = (KINDS | LIMITS)[kind](random, n, max(FAMILIES), is_partial)
        for place, k in enumerate(FAMILIES):
            found, bare = findings(sweep.first(k), seed + number)
            truth = sweep.truth[:k]
            false[place] += np.any((found != 0) & (found != truth))
            unguarded[place] += np.any((bare != 0) & (bare != truth))
            seen[place] += (found == truth)[truth != 0].mean() if is_partial else 0.0
    shares = zip(FAMILIES, false, unguarded, seen, strict=True)
    return [
        {
            **{"kind": kind, "partial": is_partial, "questions": n, "variants": k, "sweeps": n_sweeps},
            **{"false": a / n_sweeps, "unguarded": b / n_sweeps, "found": c / n_sweeps if is_partial else None},
        }
        for k, a, b, c in shares
    ]


def surely(kind: str, is_partial: bool, n: int, n_sweeps: int, seed: int) -> list[dict[str, Any]]:
    """Return the same; what lies above the aim, as a few of hundreds of cells do by chance, is drawn ten times anew."""
    rows = false_winners(kind, is_partial, n, n_sweeps, seed)
    if kind in LIMITS or all(row["false"] <= AIM for row in rows):
        return rows
    return false_winners(kind, is_partial, n, 10 * n_sweeps, seed + 1)


def otherwise(kind: str, is_partial: bool, n: int, k: int, seed: int) -> tuple[int, int]:
    """Return how many verdicts of the whole package on a sweep differ from those of `findings`, and of how many."""
    sweep = KINDS[kind](np.random.default_rng([seed, n, k, len(kind)]), n, k, is_partial)
    hypotheses = [Hypothesis.of_pair("metric", str(variant), "0", True) for variant in range(1, k + 1)]
    clusters = None if sweep.groups is None else {f"{q:03}": int(group) for q, group in enumerate(sweep.groups)}
    found = answers(as_table(sweep.scores), hypotheses, Options(clusters=clusters, scales={"metric": SHARE}))
    said = [{"better": 1.0, "worse": -1.0}.get(found[one].verdict, 0.0) for one in hypotheses]
    return int(np.sum(said != findings(sweep, seed, 19_999)[0])), k


def as_table(scores: Floats) -> pd.DataFrame:
    """Return (questions, variants) scores as a run has them in `scores.parquet`."""
    question, variant = (place.ravel() for place in np.indices(scores.shape))
    values = scores.ravel()
    status = np.where(np.isnan(values), "failed", "scored")
    names = {"variant_id": variant.astype(str), "question_id": [f"{one:03}" for one in question]}
    return pd.DataFrame({**names, "metric": "metric", "value": values, "status": status, "reason": ""})


def cells(n_sweeps: int, seed: int) -> list[tuple[str, bool, int, int, int]]:
    """Return the arguments of all cells; the limits have no partial null."""
    asked = [(kind, is_partial) for kind in KINDS for is_partial in (False, True)] + [(kind, False) for kind in LIMITS]
    return [(kind, is_partial, n, n_sweeps, seed) for kind, is_partial in asked for n in reversed(SIZES)]
