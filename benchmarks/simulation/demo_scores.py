"""The scores of the demo, question by question: real vectors for simulations, which need no run folder then.

Usage: python benchmarks/simulation/demo_scores.py RUN_FOLDER. Writes the means over repeats of the run's qualities to
`demo_scores.csv` beside this file, a row a metric and question, the baseline first of the variants.
"""

import argparse
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from rag_lab.runs.run_folder import RunFolder
from rag_lab.statistics.summaries import per_question

FILE = Path(__file__).with_name("demo_scores.csv")
PRIMARY = "retrieval.ndcg@5"
_TIE = 1e-9

Floats = npt.NDArray[np.float64]


@cache
def scores() -> pd.DataFrame:
    """Return one row a (metric, question_id), one column a variant, the baseline first."""
    return pd.read_csv(FILE, index_col=["metric", "question_id"])


def variants() -> list[str]:
    """Return the names, the baseline first."""
    return list(scores().columns)


def scored(metric: str = PRIMARY) -> Floats:
    """Return the (questions, variants) scores of a metric."""
    return np.asarray(scores().loc[metric].dropna().to_numpy(dtype=float))


@cache
def differences() -> Floats:
    """Return (questions, variants, metrics) differences from the baseline, primary metric first, NaN where none is."""
    table = scores()
    questions = sorted(set(table.index.get_level_values("question_id")))
    metrics = list(dict.fromkeys([PRIMARY, *table.index.get_level_values("metric")]))
    every = np.stack([table.loc[metric].reindex(questions).to_numpy(dtype=float) for metric in metrics], axis=2)
    found = every[:, 1:] - every[:, :1]
    return np.where(np.abs(found) < _TIE, 0.0, found)


@cache
def vectors() -> Floats:
    """Return (questions, vectors): the differences in all metrics that every question has a score in."""
    every = differences()
    return every[:, :, ~np.isnan(every).any(axis=(0, 1))].reshape(len(every), -1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="the demo's run folder")
    run = RunFolder.open(parser.parse_args().run)
    questions = per_question(run.scores())
    qualities = questions[~questions["metric"].str.startswith("cost.")]
    wide = qualities.pivot(index=["metric", "question_id"], columns="variant_id", values="mean").dropna()
    first = [run.baseline, *sorted(set(wide.columns) - {run.baseline})]
    wide[first].round(6).to_csv(FILE)


if __name__ == "__main__":
    main()
