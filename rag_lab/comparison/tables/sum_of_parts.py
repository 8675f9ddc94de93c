"""Sums beside the tests: of the single changes of a grid against all together, and of every pair of variants."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from rag_lab._kit.wording import counted, listing, signed, with_interval
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.statistics.effects import level_text
from rag_lab.statistics.families import Hypothesis, ScoreTable, answers
from rag_lab.statistics.intervals import PairedDifference, student_bounds, units
from rag_lab.statistics.scales import SHARE
from rag_lab.statistics.summaries import cluster_labels, per_question

MOST_VARIANTS = 20  # that are compared with each other, the first ones of the plan
Numbers = tuple[float, float | None, float | None, int, int, int]


@dataclass(frozen=True, slots=True)
class SumOfParts:
    """Changes alone and all together, in one metric, on the questions that all of these variants have scored.

    parts: the gain of each change alone, by `key=value`.
    together: the gain of all of them; `gap` is what that is more than the sum of the parts.
    """

    metric: str
    parts: Mapping[str, float]
    together: PairedDifference
    gap: PairedDifference

    @property
    def total(self) -> float:
        """The gains of the single changes, added up."""
        return sum(self.parts.values())

    @property
    def sentence(self) -> str:
        """Say both, and how far they lie apart."""
        together, gap = (with_interval(one.mean, one.low, one.high) for one in (self.together, self.gap))
        return (
            f"Added up, {listing(list(self.parts))} alone would change {self.metric} by {signed(self.total)}; together "
            f"they change it by {together}, {gap} against the sum ({counted(self.gap.n, 'question')})."
        )


def sum_of_parts(tables: RunTables) -> SumOfParts | None:
    """Return what the changes of a grid come to, of each factor the level that is best alone; None without them all."""
    metric, base, changes = (
        tables.main_metric or "",
        tables.run.baseline,
        {v.variant_id: v.changes for v in tables.variants},
    )
    cells = {variant: cell for variant in changes if (cell := tables.cell(variant, metric)) and cell["scored"]}
    best: dict[str, str] = {}  # the variant of a single change by its factor
    for variant in (one for one in cells if len(changes[one]) == 1):
        (factor,) = changes[variant]
        known = best.setdefault(factor, variant)
        if tables.sign(metric) * (cells[variant]["mean"] - cells[known]["mean"]) > 0:
            best[factor] = variant
    combined = {factor: changes[variant][factor] for factor, variant in best.items()}
    everything = next((variant for variant in cells if changes[variant] == combined), None)
    if base not in cells or len(best) < 2 or everything is None:
        return None
    nothing = dict.fromkeys([base, *best.values(), everything], 0.0)
    wanted = [nothing | {one: 1.0, base: -1.0} for one in (*best.values(), everything)]
    wanted.append(nothing | dict.fromkeys(best.values(), -1.0) | {everything: 1.0, base: len(best) - 1.0})
    hypotheses = [Hypothesis(metric, tuple(weights.items())) for weights in wanted]
    found = answers(tables.quality_scores, hypotheses, tables.options)
    *alone, together, gap = (found[one].difference for one in hypotheses)
    names = [f"{factor}={level_text(value)}" for factor, value in combined.items()]
    parts = {name: one.mean for name, one in zip(names, alone, strict=True) if one.mean is not None}
    return SumOfParts(metric, parts, together, gap) if len(parts) == len(names) else None


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
