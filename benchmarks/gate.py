"""How often the gate fails where nothing has changed: simulated reruns, a share of the scores drawn anew.

Each pair of runs has the same questions, variants and metrics; what is drawn anew is what a
model that samples would change. `python benchmarks/gate.py [--pairs 1000]` prints the share of pairs in which anything
is called reliably worse, with its 95% interval (Clopper and Pearson 1934); 5% are allowed.
"""

import argparse

import numpy as np
import pandas as pd
from scipy import stats

from rag_lab.statistics.families import Options, answers, differences_table, score_pairs

METRICS = ("retrieval.ndcg@10", "answer.token_f1")


def rows(scores, run):
    """Return scores (variants, metrics, questions) as rows of a run."""
    return [
        (f"q{q}", f"{run}/{variant}", 0, METRICS[metric], float(value), "scored", "")
        for (variant, metric, q), value in np.ndenumerate(scores)
    ]


def fails(random, n_questions, n_variants, changed):
    """Tell whether a gate between a run and its rerun finds anything worse."""
    first, fresh = random.beta(0.6, 0.4, (2, n_variants, len(METRICS), n_questions)).round(2)
    again = np.where(random.random(first.shape) < changed, fresh, first)
    names = ["question_id", "variant_id", "repeat", "metric", "value", "status", "reason"]
    table = pd.DataFrame([*rows(first, "a"), *rows(again, "b")], columns=names)
    pairs = score_pairs(table, [(f"b/{one}", f"a/{one}") for one in range(n_variants)], METRICS[0])
    found = answers(table, [one.hypothesis for one in pairs], Options())
    return bool((differences_table(pairs, found)["verdict"] == "worse").any())


def main():
    """Print a line a cell."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pairs", type=int, default=1000)
    n = arguments.parse_args().pairs
    for n_questions, n_variants in ((30, 2), (100, 4), (100, 16), (300, 4)):
        for changed in (0.1, 0.5):
            random = np.random.default_rng(n_questions + n_variants)
            n_failed = sum(fails(random, n_questions, n_variants, changed) for _ in range(n))
            ends = stats.binomtest(n_failed, n).proportion_ci(method="exact")
            cell = f"{n_questions} questions, {n_variants} variants, {changed:.0%} of scores drawn anew"
            print(f"{cell}: {n_failed / n:.3f} [{ends.low:.3f} to {ends.high:.3f}]", flush=True)


if __name__ == "__main__":
    main()
