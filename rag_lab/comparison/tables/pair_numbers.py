"""Every pair of variants in the main metric, for readers who take another variant than the planned one as baseline."""

from itertools import combinations

import numpy as np

from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.statistics.families import Hypothesis, ScoreTable
from rag_lab.statistics.intervals import student_bounds, units
from rag_lab.statistics.scales import SHARE
from rag_lab.statistics.summaries import cluster_labels, per_question

MOST_VARIANTS = 20  # that are compared with each other, the first ones of the plan
Numbers = tuple[float, float | None, float | None, int, int, int]


def pair_numbers(tables: RunTables) -> list[list[Numbers | None]]:
    """Return for each variant, in the order of the plan, a row of those before it; None without a common question.

    The numbers are the mean of the differences, the ends of Student's 95% interval (of clusters where the run has some;
    None with fewer than two), the questions, and in how many of them the variant is better and worse. These comparisons
    are chosen after a look at the results, so no p-value stands next to them.
    """
    metric = tables.main_metric
    scores = per_question(tables.scores, [metric]) if metric else None
    if metric is None or scores is None or scores.empty:
        return []
    table = ScoreTable(scores, tables.scales.get(metric, SHARE))
    variants = [*tables.codes][:MOST_VARIANTS]
    rows: list[list[Numbers | None]] = [[] for _ in variants]
    for (_, against), (place, variant) in combinations(enumerate(variants), 2):
        sample = table.sample(Hypothesis.of_pair(metric, variant, against))
        if not len(sample.values):
            rows[place].append(None)
            continue
        clusters = cluster_labels(sample.questions, tables.clusters) if tables.clusters is not None else None
        column, signed = units(sample.values, clusters), tables.sign(metric) * sample.values
        low, high = student_bounds(column, 0.95) if len(column.sums) > 1 else (None, None)
        rows[place].append((column.mean, low, high, len(signed), int(np.sum(signed > 0)), int(np.sum(signed < 0))))
    return rows
