"""Does routing pay: the HyDE studies that a run holds, each with a rule that was learned from it.

A study is a set of variants that differ in `query.hyde` alone: `none`, `always` and, where it was run, `classified`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.statistics import routing
from rag_lab.statistics.effects import factor_values
from rag_lab.statistics.randomization import holm
from rag_lab.statistics.routing_ceilings import Ceiling, class_ceiling, question_ceiling, repeated_differences
from rag_lab.statistics.scales import SHARE, Scale

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
    scored = set(tables.scores.loc[tables.scores["metric"] == metric, "variant_id"])
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
