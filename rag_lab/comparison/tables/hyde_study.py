"""Does routing pay: the HyDE studies that a run holds, each with a rule that was learned from it.

A study is a set of variants that differ in `query.hyde` alone: `none`, `always` and, where it was run, `classified`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.statistics.effects.factors import factor_values
from rag_lab.statistics.randomization import holm
from rag_lab.statistics.routing import routing_table as by_arm
from rag_lab.statistics.routing.ceilings import Ceiling, class_ceiling, question_ceiling, repeated_differences
from rag_lab.statistics.routing.learned_routing import LearnedRouting, learn_class_to_hyde
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
    pairs: tuple[by_arm.ArmPair, ...] = field(repr=False)


@dataclass(frozen=True)
class RoutingStudy(PlannedStudy):
    """One HyDE study, in one metric.

    scale: of the metric. Differences have the sign of the scores, what mistakes cost is positive where they hurt.
    by_class, question_ceiling, class_ceiling, confusion, mistakes: see `statistics.routing`; the second ceiling is
        None where no question has a class, `confusion` is None without labels or predictions,
        `mistakes` without a classified arm as well.
    learned: a rule, with its gain on questions that it was not learned on; None where no question has a class.
    p_gain: p-value of that gain over the better of no HyDE and HyDE for all, corrected over the studies of the run.
    yaml: the pipeline of the study with the learned rule; `file_name` is what the report calls it.
    """

    metric: str
    scale: Scale
    by_class: pd.DataFrame = field(repr=False)
    question_ceiling: Ceiling = field(repr=False)
    class_ceiling: Ceiling | None = field(repr=False)
    confusion: pd.DataFrame | None = field(repr=False)
    mistakes: pd.DataFrame | None = field(repr=False)
    learned: LearnedRouting | None = field(repr=False)
    yaml: str = field(repr=False)
    p_gain: float | None = None

    @property
    def file_name(self) -> str:
        """The name of the file with the learned rule, beside the report."""
        where = re.sub(r"[^A-Za-z0-9._]+", "-", self.where).strip("-.")
        return f"learned_class_to_hyde{f'__{where}' if where else ''}.yaml"


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
        if variant in scored and levels.get(HYDE) in by_arm.ARMS:
            settings.setdefault(others_of[variant], {}).setdefault(levels[HYDE], variant)
    found = {others: arms for others, arms in settings.items() if {"none", "always"} <= set(arms)}
    ordered = sorted(found, key=lambda others: others != others_of[tables.run.baseline])
    varied = {name for setting in ordered for name, level in setting if (name, level) not in ordered[0]}
    studies = []
    for others in ordered:
        arms = {arm: found[others][arm] for arm in by_arm.ARMS if arm in found[others]}
        classifying = arms.get("classified", arms["always"])
        table = by_arm.routing_table(tables.scores, metric, arms, tables.traces[classifying], tables.clusters)
        column = "labelled" if table["labelled"].notna().any() else "predicted"
        where = ", ".join(f"{name}={level}" for name, level in others if name in varied)
        pairs = tuple(by_arm.arm_pairs(table, column, metric, arms))
        studies.append(PlannedStudy(where, arms, classifying, table, column, pairs))
    return tuple(studies)


def routing_studies(tables: RunTables, planned: Sequence[PlannedStudy]) -> tuple[RoutingStudy, ...]:
    """Return the planned studies with what was measured, in the main metric."""
    studies = [_study(tables, one) for one in planned]
    adjusted = holm([study.learned.p_value if study.learned else None for study in studies])
    return tuple(replace(study, p_gain=p_gain) for study, p_gain in zip(studies, adjusted, strict=True))


def _study(tables: RunTables, planned: PlannedStudy) -> RoutingStudy:
    metric, table, arms = tables.main_metric or "", planned.table, planned.arms
    scale = tables.scales.get(metric, SHARE)
    is_labelled, is_predicted = bool(table["labelled"].notna().any()), bool(table["predicted"].notna().any())
    config = tables.run.config(planned.classifying)
    rule = config.query.class_to_hyde if config is not None and "classified" in arms else None
    learned = None
    if is_labelled or is_predicted:
        learned = learn_class_to_hyde(table, "predicted" if is_predicted else "labelled", scale=scale)
    both = is_labelled and is_predicted
    repeated = repeated_differences(tables.scores, metric, arms, tables.clusters)
    return RoutingStudy(
        **vars(planned),
        metric=metric,
        scale=scale,
        by_class=by_arm.by_class(table, planned.column, planned.pairs, tables.answers),
        question_ceiling=question_ceiling(table, repeated, scale=scale),
        class_ceiling=class_ceiling(table, planned.column, scale=scale) if learned else None,
        confusion=by_arm.confusion(table) if both else None,
        mistakes=by_arm.mistake_cost(table, {str(name): on for name, on in rule.items()}, scale=scale)
        if both and rule
        else None,
        learned=learned,
        yaml=learned.to_yaml(config) if learned else "",
    )
