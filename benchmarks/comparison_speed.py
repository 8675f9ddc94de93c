"""Time the comparison of a large sweep: 16 variants, 1,000 questions, 8 metrics, 3% of the scores missing.

Usage: python benchmarks/comparison_speed.py. Prints one JSON object; the aim is 10 s for `total_s` on two cores: means
and their intervals, both families with the guard for failures and the intervals of the differences, and "not worse by
more than the margin" in each metric, against the baseline and against the best.
"""

from __future__ import annotations

import json
import os
import time

import numpy as np
import pandas as pd
from simulated_scores import binary, reciprocal_rank, skewed, tied

from rag_lab.statistics.complete_cases import summary
from rag_lab.statistics.non_inferiority import not_worse, not_worse_than_best, pairs
from rag_lab.statistics.pairwise import comparisons

N_VARIANTS, N_QUESTIONS, N_METRICS = 16, 1000, 8


def scores() -> pd.DataFrame:
    """Return a table like `scores.parquet`."""
    random = np.random.default_rng(0)
    parts = []
    for metric in range(N_METRICS):
        family = (skewed, tied, binary, reciprocal_rank)[metric % 4]
        values = family(random, N_QUESTIONS, np.linspace(0, 0.1, N_VARIANTS))
        values[random.random(values.shape) < 0.03] = np.nan
        for variant in range(N_VARIANTS):
            column = values[:, variant]
            parts.append(
                pd.DataFrame(
                    {
                        **{"variant_id": f"variant {variant}", "metric": f"metric {metric}", "repeat": 0},
                        **{"question_id": [f"q{number}" for number in range(N_QUESTIONS)], "value": column},
                        **{"status": np.where(np.isnan(column), "failed", "scored"), "reason": ""},
                    }
                )
            )
    return pd.concat(parts, ignore_index=True)


def main() -> None:
    table = scores()
    variants, margins = list(table["variant_id"].unique()), dict.fromkeys(table["metric"].unique(), 0.05)
    started, cpu = time.perf_counter(), time.process_time()
    summary(table)
    summarised = time.perf_counter()
    rows = len(comparisons(table, "variant 0"))
    compared = time.perf_counter()
    not_worse(table, pairs((variant, "variant 0") for variant in variants[1:]), margins)
    not_worse_than_best(table, variants, margins)
    decided, cpu = time.perf_counter(), time.process_time() - cpu
    all_rows = len(comparisons(table, "variant 0", pairs="all"))
    result = {
        **{"variants": N_VARIANTS, "questions": N_QUESTIONS, "metrics": N_METRICS, "rows": len(table)},
        **{"means_s": round(summarised - started, 2), "differences_s": round(compared - summarised, 2)},
        **{"margins_s": round(decided - compared, 2), "total_s": round(decided - started, 2), "cpu_s": round(cpu, 2)},
        **{"comparisons": rows, "all_pairs_s": round(time.perf_counter() - decided, 2), "all_comparisons": all_rows},
        **{"cores": len(os.sched_getaffinity(0)), "load_average": round(os.getloadavg()[0], 1)},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
