"""Check the workbench's own claims on data whose truth is known: false winners, coverage of intervals, power.

Usage: python benchmarks/calibration.py [--sweeps 1000] [--seed 0] [--page docs/calibration.md]. Prints one JSON object
and writes the tables as a page, where one is given.

A/A sweeps have 16 variants that are the same but for chance; a sweep that calls any of them better or worse has named a
false winner, which may happen in 5% of sweeps. 95% intervals should cover the truth in 93% to 97% of cases.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from paired_power import power
from simulated_scores import FAMILIES, Floats, documents_of, true_mean

from rag_lab.statistics.corrections import holm
from rag_lab.statistics.intervals import PairedDifference, mean_intervals, paired_differences
from rag_lab.statistics.verdict import verdict

N_VARIANTS = 16
N_QUESTIONS = 100
SIZES = (50, 100, 200)
LIFT = 0.3
POWER_LIFTS = (0.1, 0.2, 0.4)
POWER_SIZES = (50, 100, 200, 400)
_SWEEPS_AT_ONCE = 50  # share resamples and flips, so that many chunks average over them


def differences(scores: list[Floats], seed: int, declare: bool) -> list[PairedDifference]:
    """Compare the other columns of each (n, k) table with its first, on the rows that both have."""
    pairs, clusters = [], []
    for table in scores:
        documents = np.array(documents_of(len(table)))
        for column in range(1, table.shape[1]):
            both = ~np.isnan(table[:, 0]) & ~np.isnan(table[:, column])
            pairs.append((table[both, column], table[both, 0]))
            clusters.append(list(documents[both]))
    return paired_differences(pairs, seed=seed, clusters=clusters if declare else None)


def false_winners(name: str, declare: bool, n_sweeps: int, seed: int) -> dict[str, Any]:
    """Run A/A sweeps: the share that names a winner, and how often the interval of a difference covers zero."""
    random = np.random.default_rng([seed, len(name)])
    named, covered = 0, []
    for chunk in range(0, n_sweeps, _SWEEPS_AT_ONCE):
        sweeps = [FAMILIES[name](random, N_QUESTIONS, np.zeros(N_VARIANTS)) for _ in range(_SWEEPS_AT_ONCE)]
        found = differences(sweeps, seed + chunk, declare)
        covered += [covers(d, 0.0) for d in found]
        for start in range(0, len(found), N_VARIANTS - 1):
            family = found[start : start + N_VARIANTS - 1]
            p_values = holm([d.p_value for d in family])
            said = [verdict(d, p, len(family)) for d, p in zip(family, p_values, strict=True)]
            named += any(word in ("better", "worse") for word in said)
    label = name if not declare else f"{name}, declared"
    return {"scores": label, "sweeps": n_sweeps, "false_winner": named / n_sweeps, "covered": float(np.mean(covered))}


def coverage(name: str, n: int, repetitions: int, seed: int) -> dict[str, Any]:
    """Return how often 95% intervals hold the true mean, and the true difference with and without an effect."""
    family, declare = FAMILIES[name], name == "clustered"
    random = np.random.default_rng([seed, n, len(name)])
    means, nothing, effect = [], [], []
    base, lifted = true_mean(family, 0.0), true_mean(family, LIFT)
    for chunk in range(0, repetitions, 100):
        tables = [family(random, n, np.array([0.0, 0.0])) for _ in range(100)]
        changed = [family(random, n, np.array([0.0, LIFT])) for _ in range(100)]
        samples = [table[~np.isnan(table[:, 0]), 0] for table in tables]
        clusters = [documents_of(n)] * 100 if declare else None
        means += [covers(found, base) for found in mean_intervals(samples, seed=seed + chunk, clusters=clusters)]
        nothing += [covers(d, 0.0) for d in differences(tables, seed + chunk, declare)]
        effect += [covers(d, lifted - base) for d in differences(changed, seed + chunk, declare)]
    return {
        **{"scores": name, "questions": n, "repetitions": repetitions, "mean": float(np.mean(means))},
        **{"no_difference": float(np.mean(nothing)), "difference": float(np.mean(effect))},
    }


def covers(found: Any, truth: float) -> bool:
    """Tell whether the interval holds the truth (to the precision that the truth is known)."""
    return bool(found.low is not None and found.low - 1e-9 <= truth <= found.high + 1e-9)


def seen(name: str, lift: float, n: int, repetitions: int, seed: int) -> dict[str, Any]:
    """Return how often a known effect is called better: alone, and as the only real one of 15 comparisons."""
    family = FAMILIES[name]
    random = np.random.default_rng([seed, n, len(name), int(100 * lift)])
    found: list[PairedDifference] = []
    for chunk in range(0, repetitions, 100):
        found += differences([family(random, n, np.array([0.0, lift])) for _ in range(100)], seed + chunk, False)
    rates = []
    for size in (1, N_VARIANTS - 1):
        said = [verdict(d, min(1.0, size * (d.p_value or 0.0)), size) for d in found]
        rates.append(said.count("better") / len(said))
    effect = true_mean(family, lift) - true_mean(family, 0.0)
    spread = float(np.mean([d.sd for d in found]))
    return {
        **{"scores": name, "questions": n, "difference": round(effect, 4), "sd": round(spread, 3)},
        **{"alone": rates[0], "one_of_15": rates[1]},
        **{"formula_alone": round(power(effect, spread, n), 3), "formula_15": round(power(effect, spread, n, 15), 3)},
    }


def page(result: dict[str, Any]) -> str:
    """Return the tables as `docs/calibration.md`."""
    return f"""# Calibration

How far the conclusions hold on data whose truth is known. Made by `python benchmarks/calibration.py --page
docs/calibration.md`; `conclusions.md` defines the methods, `benchmarks/simulated_scores.py` the scores.

## False winners

{result["sweeps"]:,} A/A sweeps of each kind of scores, 16 variants that are the same but for chance, 100 questions.
`false_winner` is the share of sweeps in which any variant is called better or worse than the baseline; it may be 0.05.
`covered` is how often the interval of a difference holds zero. Clustered scores that are
*not* declared show why declaring matters.

{markdown(result["false_winners"])}

## Coverage of 95% intervals

How often they hold the true mean, the true difference where there is none, and where there is one. The aim is
0.93 to 0.97.

{markdown(result["coverage"])}

## Power

How often a true difference is called better: alone, and as the only real one of 15 comparisons (Holm); beside
it what the formula of the paired t-test says.

{markdown(result["power"])}
"""


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return `rows` as a Markdown table."""
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        cells = [f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=1000, help="A/A sweeps of each kind of scores, a multiple of 100")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, help="a Markdown file to write")
    given = parser.parse_args()
    started = time.perf_counter()
    kinds = [(name, declare) for name in FAMILIES for declare in ([False, True] if name == "clustered" else [False])]
    result: dict[str, Any] = {
        "false_winners": [false_winners(name, declare, given.sweeps, given.seed) for name, declare in kinds],
        "coverage": [coverage(name, n, 4 * given.sweeps, given.seed) for name in FAMILIES for n in SIZES],
        "power": [
            seen(name, lift, n, max(100, given.sweeps // 2), given.seed)
            for name in ("skewed", "tied", "binary")
            for lift in POWER_LIFTS
            for n in POWER_SIZES
        ],
    }
    result["sweeps"], result["seconds"] = given.sweeps, round(time.perf_counter() - started, 1)
    print(json.dumps(result))
    if given.page:
        given.page.write_text(page(result), encoding="utf-8")


if __name__ == "__main__":
    main()
