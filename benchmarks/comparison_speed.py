"""Time the comparison of a large sweep: 16 variants, 1,000 questions, 8 metrics, 3% of the scores missing, margins.

Usage: python benchmarks/comparison_speed.py. Prints one JSON object; the aim is 10 s for `whole_s` on two cores: from a
run folder to the sentences, with means, both families, the guard for failures, intervals, effects, "not worse by more
than the margin" in each metric, and what to use. Before it, its parts as functions of a table of scores. `cpu` is
processor time, which other work on the machine does not change much.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from simulated_scores import binary, reciprocal_rank, skewed, tied

from rag_lab.comparison.comparison import read_comparison
from rag_lab.comparison.findings.conclusions import conclusions
from rag_lab.comparison.findings.recommendation import recommendation
from rag_lab.statistics.non_inferiority import not_worse, not_worse_than_best
from rag_lab.statistics.summaries import summary

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
N_QUESTIONS = 1000
VARIANTS = tuple(f"variant {number}" for number in range(16))
METRICS = tuple(f"retrieval.{kind}@{k}" for k in (3, 5) for kind in ("ndcg", "recall", "hit_rate", "mrr"))
MARGINS = dict.fromkeys(METRICS, 0.05)


def scores() -> pd.DataFrame:
    """Return a table like `scores.parquet`."""
    random = np.random.default_rng(0)
    parts = []
    for metric, family in zip(METRICS, 2 * (skewed, tied, binary, reciprocal_rank), strict=True):
        values = family(random, N_QUESTIONS, np.linspace(0, 0.1, len(VARIANTS)))
        values[random.random(values.shape) < 0.03] = np.nan
        for variant, column in zip(VARIANTS, values.T, strict=True):
            parts.append(
                pd.DataFrame(
                    {
                        **{"variant_id": variant, "metric": metric, "repeat": 0},
                        **{"question_id": [f"q{number}" for number in range(N_QUESTIONS)], "value": column},
                        **{"status": np.where(np.isnan(column), "failed", "scored"), "reason": ""},
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that pass, and those of the processor."""
    started, cpu = time.perf_counter(), time.process_time()
    work()
    return round(time.perf_counter() - started, 2), round(time.process_time() - cpu, 2)


def margins(table: pd.DataFrame) -> None:
    not_worse(table, {variant: {variant: 1.0, VARIANTS[0]: -1.0} for variant in VARIANTS[1:]}, MARGINS)
    not_worse_than_best(table, VARIANTS, MARGINS)


def whole(folder: Path) -> None:
    comparison = read_comparison(folder, margins=MARGINS)
    conclusions(comparison)
    recommendation(comparison)


def main() -> None:
    from factories import comparisons
    from synthetic_run import write_run

    table = scores()
    plans = {name: {"retrieval.base_k": 10 + number} if number else {} for number, name in enumerate(VARIANTS)}
    wide = {metric: rows.pivot(index="question_id", columns="variant_id") for metric, rows in table.groupby("metric")}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        values = {metric: {name: wide[metric]["value"][name].to_numpy() for name in VARIANTS} for metric in METRICS}
        write_run(run, plans, values)
        parts = {
            "means": timed(lambda: summary(table)),
            "differences": timed(lambda: comparisons(table, VARIANTS[0])),
            "all_pairs": timed(lambda: comparisons(table, VARIANTS[0], pairs="all")),
            "margins": timed(lambda: margins(table)),
            "whole": timed(lambda: whole(run)),
        }
    sizes = {"variants": len(VARIANTS), "questions": N_QUESTIONS, "metrics": len(METRICS), "rows": len(table)}
    seconds = {f"{name}_s": passed for name, (passed, _) in parts.items()}
    processor = {f"{name}_cpu_s": cpu for name, (_, cpu) in parts.items()}
    cores = {"cores": len(os.sched_getaffinity(0)), "load_average": round(os.getloadavg()[0], 1)}
    print(json.dumps({**sizes, **seconds, **processor, **cores}))


if __name__ == "__main__":
    main()
