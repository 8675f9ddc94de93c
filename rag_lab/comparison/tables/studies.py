"""What a run studies beside its differences: routing of HyDE, the growth of the corpus, single changes added up.

A study of HyDE is a set of variants that differ in `query.hyde` alone: `none`, `always` and, where it was run,
`classified`; a rule is learned from each. Growth is how pipelines fare as documents that answer nothing join the
corpus. Changes of a grid are set against all together, and every pair of variants is compared.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
import pandas as pd

from rag_lab._kit.wording import counted, listing, plain, signed, with_interval
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.statistics import routing
from rag_lab.statistics.effects import factor_values, level_text
from rag_lab.statistics.families import Hypothesis, ScoreTable, differences
from rag_lab.statistics.intervals import PairedDifference, student_bounds, units
from rag_lab.statistics.randomization import holm
from rag_lab.statistics.routing_ceilings import Ceiling, class_ceiling, question_ceiling, repeated_differences
from rag_lab.statistics.summaries import SHARE, Scale, cluster_labels, per_question

HYDE, RULE = "query.hyde", "query.class_to_hyde"


@dataclass(frozen=True)
class PlannedStudy:
    """The arms of a study, its table of scores by question, and the pairs of arms that are compared.

    where: the levels of the other factors in which it was made, empty where nothing else varies.
    arms: arm to variant_id.
    classifying: the variant whose traces tell the class of a question.
    column: the class that the study goes by: `labelled` by the dataset or `predicted` by the pipeline.
    """

    where: str
    arms: Mapping[str, str]
    classifying: str
    table: pd.DataFrame = field(repr=False)
    column: str
    pairs: tuple[routing.ArmPair, ...] = field(repr=False)


@dataclass(frozen=True)
class RoutingStudy(PlannedStudy):
    """One HyDE study, in one metric.

    scale: of the metric. Differences have the sign of the scores, what mistakes cost is positive where they hurt.
    by_class, question_ceiling, class_ceiling, confusion, mistakes: see `statistics.routing`; the second ceiling is
        None where no question has a class, `confusion` is None without labels or predictions,
        `mistakes` without a classified arm as well.
    learned: a rule, with its gain on questions that it was not learned on; None where no question has a class.
    p_gain: p-value of that gain over the better of no HyDE and HyDE for all, corrected over the studies of the run.
    yaml: the pipeline of the study with the learned rule; the report keeps it under `file_name`.
    """

    metric: str
    scale: Scale
    by_class: pd.DataFrame = field(repr=False)
    question_ceiling: Ceiling = field(repr=False)
    class_ceiling: Ceiling | None = field(repr=False)
    confusion: pd.DataFrame | None = field(repr=False)
    mistakes: pd.DataFrame | None = field(repr=False)
    learned: routing.LearnedRouting | None = field(repr=False)
    yaml: str = field(repr=False)
    file_name: str
    p_gain: float | None = None


def planned_studies(tables: RunTables) -> tuple[PlannedStudy, ...]:
    """Return a study for each setting of the other factors that has the arms `none` and `always`, baseline's first."""
    metric = tables.main_metric
    if metric is None or tables.scores.empty:
        return ()
    scored = set(tables.scores.loc[tables.scores["metric"] == metric, "variant_id"].unique())
    values = factor_values({plan.variant_id: plan.changes for plan in tables.variants}, tables.baseline_values)
    settings: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    others_of = {
        variant: tuple((name, level) for name, level in levels.items() if name not in (HYDE, RULE))
        for variant, levels in values.items()
    }
    for variant, levels in values.items():
        if variant in scored and levels.get(HYDE) in routing.ARMS:
            settings.setdefault(others_of[variant], {}).setdefault(levels[HYDE], variant)
    found = {others: arms for others, arms in settings.items() if {"none", "always"} <= set(arms)}
    ordered = sorted(found, key=lambda others: others != others_of[tables.run.baseline])
    varied = {name for setting in ordered for name, level in setting if (name, level) not in ordered[0]}
    studies = []
    for others in ordered:
        arms = {arm: found[others][arm] for arm in routing.ARMS if arm in found[others]}
        classifying = arms.get("classified", arms["always"])
        table = routing.routing_table(tables.scores, metric, arms, tables.traces[classifying], tables.clusters)
        column = "labelled" if table["labelled"].notna().any() else "predicted"
        where = ", ".join(f"{name}={level}" for name, level in others if name in varied)
        pairs = tuple(routing.arm_pairs(table, column, metric, arms))
        studies.append(PlannedStudy(where, arms, classifying, table, column, pairs))
    return tuple(studies)


def routing_studies(tables: RunTables, planned: Sequence[PlannedStudy]) -> tuple[RoutingStudy, ...]:
    """Return the planned studies with what was measured, in the main metric."""
    metric = tables.main_metric or ""
    scale, studies = tables.scales.get(metric, SHARE), []
    for one in planned:
        table, arms = one.table, one.arms
        is_labelled, is_predicted = bool(table["labelled"].notna().any()), bool(table["predicted"].notna().any())
        both, learned = is_labelled and is_predicted, None
        config = tables.run.config(one.classifying)
        rule = config.query.class_to_hyde if config is not None and "classified" in arms else None
        if is_labelled or is_predicted:
            learned = routing.learn_class_to_hyde(table, "predicted" if is_predicted else "labelled", scale=scale)
        mistakes, where = None, re.sub(r"[^A-Za-z0-9._]+", "-", one.where).strip("-.")
        if both and rule:
            mistakes = routing.mistake_cost(table, {str(name): on for name, on in rule.items()}, scale=scale)
        repeated = repeated_differences(tables.scores, metric, arms, tables.clusters)
        studies.append(
            RoutingStudy(
                **vars(one),
                metric=metric,
                scale=scale,
                by_class=routing.by_class(table, one.column, one.pairs, tables.answers),
                question_ceiling=question_ceiling(table, repeated, scale=scale),
                class_ceiling=class_ceiling(table, one.column, scale=scale) if learned else None,
                confusion=routing.confusion(table) if both else None,
                mistakes=mistakes,
                learned=learned,
                yaml=learned.to_yaml(config) if learned else "",
                file_name=f"learned_class_to_hyde{f'__{where}' if where else ''}.yaml",
            )
        )
    adjusted = holm([study.learned.p_value if study.learned else None for study in studies])
    return tuple(replace(study, p_gain=p_gain) for study, p_gain in zip(studies, adjusted, strict=True))


@dataclass(frozen=True)
class Growth:
    """The pipelines of a run that searched corpora of several sizes, in the main metric.

    sizes: numbers of distractors, rising.
    curves: of each pipeline, by the levels of the other factors, its variants by size; each has at least two.
    sentences: which pipeline is best at either end, and how far the two lie apart.
    """

    metric: str
    sizes: tuple[int, ...]
    curves: Mapping[str, Mapping[int, str]]
    sentences: tuple[str, ...]


def growth_found(tables: RunTables) -> Growth | None:
    """Return how pipelines fare as the corpus grows; None where no pipeline was scored at two sizes."""
    metric, curves = tables.main_metric or "", dict[str, dict[int, str]]()
    keys = [key for key in tables.changed_keys if key not in ("corpus.distractors", "corpus.distractors_from")]
    for plan in tables.variants:
        config, cell = tables.pipelines.get(plan.variant_id), tables.cell(plan.variant_id, metric)
        if config is not None and cell and cell["scored"]:
            values = {**config.flat(), **plan.changes}  # objects in place of modules are in the changes alone
            name = ", ".join(f"{key}={level_text(values[key])}" for key in keys if key in values) or "The pipeline"
            curves.setdefault(name, {}).setdefault(config.corpus.distractors, plan.variant_id)
    curves = {name: dict(sorted(found.items())) for name, found in curves.items() if len(found) > 1}
    if not curves:
        return None
    sizes = tuple(sorted({size for found in curves.values() for size in found}))
    return Growth(metric, sizes, curves, tuple(_sentences(tables, metric, sizes, curves)))


def _sentences(
    tables: RunTables, metric: str, sizes: Sequence[int], curves: Mapping[str, Mapping[int, str]]
) -> list[str]:
    """Say which pipeline is best with the fewest and with the most distractors, of those that were scored with both."""
    ends = {name: (found[sizes[0]], found[sizes[-1]]) for name, found in curves.items() if {*sizes} <= {*found}}
    if not ends:
        return []
    few, many = f"{sizes[0]:,}", f"{sizes[-1]:,} distractors"
    means = tables.summary.set_index(["variant_id", "metric"])["mean"].to_dict()
    cells = {name: tuple(float(means[variant, metric]) for variant in pair) for name, pair in ends.items()}
    first = max(cells, key=lambda name: tables.sign(metric) * cells[name][0])
    last = max(cells, key=lambda name: tables.sign(metric) * cells[name][1])
    falls = f"from {plain(cells[first][0])} to {plain(cells[first][1])}"
    if len(cells) == 1:
        return [f"{metric} of {first} goes {falls}, from {few} to {many}."]
    if first == last:
        return [f"{first} is the best in {metric} with {few} and with {many}: it goes {falls}."]
    pair = Hypothesis.of_pair(metric, ends[last][1], ends[first][1])
    _, found = differences(tables.quality_scores, [pair], tables.options)[pair]
    return [
        f"The best pipeline in {metric} changes as the corpus grows: {first} with {few}, {last} with {many}. There the "
        f"two differ by {with_interval(found.mean, found.low, found.high)} ({counted(found.n, 'question')}); "
        f"{first} goes {falls}."
    ]


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
    found = differences(tables.quality_scores, hypotheses, tables.options)
    *alone, together, gap = (found[one][1] for one in hypotheses)
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
