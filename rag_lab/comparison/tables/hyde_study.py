"""Does routing pay: the HyDE studies that a run holds, each with a rule that was learned from it.

A study is a set of variants that differ in `query.hyde` alone: `none`, `always` and, where it was run, `classified`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pandas as pd

from rag_lab._kit.wording import number, p_text, plain, signed, signed_interval, with_interval
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.statistics.effects.factors import factor_values
from rag_lab.statistics.randomization import holm
from rag_lab.statistics.routing.ceilings import Ceiling, class_ceiling, question_ceiling, repeated_differences
from rag_lab.statistics.routing.learned_routing import LearnedRouting, learn_class_to_hyde
from rag_lab.statistics.routing.routing_table import (
    ALL,
    ARMS,
    ArmPair,
    arm_pairs,
    by_class,
    confusion,
    mistake_cost,
    routing_table,
)
from rag_lab.statistics.scales import SHARE, Scale
from rag_lab.statistics.verdict import ALPHA

HYDE, RULE = "query.hyde", "query.class_to_hyde"
_ARM = {"none": "no HyDE", "always": "HyDE for every question", "classified": "HyDE by class"}


@dataclass(frozen=True)
class RoutingStudy:
    """One HyDE study, in one metric.

    scale: of the metric. Differences have the sign of the scores, what mistakes cost is positive where they hurt.
    where: the levels of the other factors in which it was made, empty where nothing else varies.
    arms: arm to variant_id.
    column: the class that `by_class` and `learned` go by: `labelled` by the dataset or `predicted` by the pipeline.
    by_class, question_ceiling, class_ceiling, confusion, mistakes: see `statistics.routing`; the second ceiling is
        None where no question has a class, `confusion` is None without labels or predictions,
        `mistakes` without a classified arm as well.
    learned: a rule, with its gain on questions that it was not learned on; None where no question has a class.
    p_gain: p-value of that gain over the better of no HyDE and HyDE for all, corrected over the studies of the run.
    yaml: the pipeline of the study with the learned rule; `file_name` is what the report calls it.
    """

    metric: str
    scale: Scale
    where: str
    arms: Mapping[str, str]
    column: str
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


@dataclass(frozen=True)
class PlannedStudy:
    """The arms of a study, its table of scores by question, and the pairs of arms that are compared.

    where, arms, column: as in `RoutingStudy`.
    classifying: the variant whose traces tell the class of a question.
    """

    where: str
    arms: Mapping[str, str]
    classifying: str
    table: pd.DataFrame = field(repr=False)
    column: str
    pairs: tuple[ArmPair, ...]


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
        if variant in scored and levels.get(HYDE) in ARMS:
            settings.setdefault(others_of[variant], {}).setdefault(levels[HYDE], variant)
    found = {others: arms for others, arms in settings.items() if {"none", "always"} <= set(arms)}
    ordered = sorted(found, key=lambda others: others != others_of[tables.run.baseline])
    varied = {name for setting in ordered for name, level in setting if (name, level) not in ordered[0]}
    studies = []
    for others in ordered:
        arms = {arm: found[others][arm] for arm in ARMS if arm in found[others]}
        classifying = arms.get("classified", arms["always"])
        table = routing_table(tables.scores, metric, arms, tables.traces[classifying], tables.clusters)
        column = "labelled" if table["labelled"].notna().any() else "predicted"
        where = ", ".join(f"{name}={level}" for name, level in others if name in varied)
        pairs = tuple(arm_pairs(table, column, metric, arms))
        studies.append(PlannedStudy(where, arms, classifying, table, column, pairs))
    return tuple(studies)


def routing_studies(tables: RunTables) -> tuple[RoutingStudy, ...]:
    """Return the studies of the run, in the main metric."""
    studies = [_study(tables, planned) for planned in planned_studies(tables)]
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
        metric=metric,
        scale=scale,
        where=planned.where,
        arms=arms,
        column=planned.column,
        by_class=by_class(table, planned.column, planned.pairs, tables.answers),
        question_ceiling=question_ceiling(table, repeated, scale=scale),
        class_ceiling=class_ceiling(table, planned.column, scale=scale) if learned else None,
        confusion=confusion(table) if both else None,
        mistakes=mistake_cost(table, {str(name): on for name, on in rule.items()}, scale=scale)
        if both and rule
        else None,
        learned=learned,
        yaml=learned.to_yaml(config) if learned else "",
    )


def study_conclusion(study: RoutingStudy) -> str:
    """Return in a few words whether a rule that is learned from this run pays."""
    setting = f" with {study.where}" if study.where else ""
    known, one, most = study.class_ceiling, study.question_ceiling, ""
    if known is not None and known.gain is not None:
        most = f" The best rule by class would change the score by {_left(known)}, chance subtracted."
    elif one.gain is not None and one.is_of_repeats:
        most = f" A router that knows each question would change the score by {_left(one)}."
    elif one.gain is not None:
        most = f" The better arm of each question would change the score by {_left(one)}, chance subtracted."
    if study.learned is None:
        return f"No question has a class, so no routing of HyDE can be learned{setting}.{most}"
    gain = study.learned.gains["best_arm"]
    on = [name for name, hyde in study.learned.class_to_hyde.items() if hyde]
    return (
        f"Routing HyDE by class{setting}: the rule learned from this run is HyDE for {', '.join(on) or 'no class'}. On "
        f"new questions such rules change {study.scale.named(study.metric)} by "
        f"{with_interval(gain.mean, gain.low, gain.high)} against the better of no HyDE and HyDE for all: "
        f"{_pays(study)}.{most}"
    )


def _pays(study: RoutingStudy) -> str:
    """Say whether a learned rule gains, by its interval and by the classes dealt out at random; both must agree."""
    gain = study.learned.gains["best_arm"] if study.learned else None
    if gain is None or gain.mean is None or gain.ties == gain.n:
        return "they change no question" if gain and gain.mean is not None else "no question could be scored"
    low, high = sorted(study.scale.sign * (number(end) or 0.0) for end in (gain.low, gain.high))
    if high < 0:
        return "no rule learned from these questions pays"
    rare = study.p_gain is not None and study.p_gain < ALPHA
    if rare and low > 0:
        return "a rule learned from these questions pays"
    unlike = f"p {p_text(study.p_gain)} where classes are dealt out at random"
    why = f" ({unlike})" if low > 0 else f" ({unlike}, but the interval holds zero)" if rare else ""
    return f"the data cannot tell whether a rule learned from these questions pays{why}"


def study_sentences(study: RoutingStudy) -> list[str]:
    """Return what the study says, the most important first."""
    setting, told, classes, found = f" with {study.where}" if study.where else "", [], 0, []
    for row in study.by_class.to_dict("records"):
        seen = with_interval(row["difference"], row["low"], row["high"])
        is_found = row["verdict"] in ("better", "worse")
        verdict = f"reliably {row['verdict']}" if is_found else row["verdict"]
        if row["query_class"] == ALL:
            told.append(
                f"{_ARM[row['arm']]}, against {_ARM[row['against']]}{setting}: {seen} in "
                f"{study.scale.named(study.metric)} over {row['n']} questions; {verdict}."
            )
            continue
        classes += 1
        if is_found:
            found.append(f"{row['query_class']} ({_ARM[row['arm']]} against {_ARM[row['against']]}: {seen})")
    if found:
        told.append(f"By class, reliable differences: {'; '.join(found)}.")
    elif classes:
        told.append("In no class is a difference reliable.")
    return [*told, *_ceiling_sentences(study), *_classifier_sentences(study)]


def _ceiling_sentences(study: RoutingStudy) -> list[str]:
    one, known = study.question_ceiling, study.class_ceiling
    if one.gain is None:
        return ["No question has a score in every arm."]
    told = [
        f"Choosing the better arm of each question afterwards changes the score by {signed(one.seen)} against "
        f"{_ARM[one.best_arm]}; chance alone by {signed(one.by_chance)}. {_left(one)} is left. One score a question "
        "cannot separate what lasts from chance; `repeats: 2` can."
    ]
    if one.is_of_repeats:
        told = [
            "Choosing each question's arm by one repeat, and not one arm for all, changes "
            f"{study.scale.named(study.metric)} in the other repeats by {_left(one)}. No router can gain more on these "
            f"{one.n} questions."
        ]
    if known is None or known.gain is None:
        return told
    if not known.seen:
        return [
            *told,
            f"In every class {_ARM[known.best_arm]} scores best: no rule by these classes gains on these questions. On "
            f"others it could gain {_left(known)}, chance subtracted.",
        ]
    return [
        *told,
        f"Choosing the better arm of each class afterwards changes the score by {signed(known.seen)} against "
        f"{_ARM[known.best_arm]}; random classes by {signed(known.by_chance)}. A rule by these classes can reach "
        f"{_left(known)}.",
    ]


def _left(one: Ceiling) -> str:
    return with_interval(one.gain, one.low, one.high)


def _classifier_sentences(study: RoutingStudy) -> list[str]:
    """Say how often the pipeline gave the class of the dataset, and what its mistakes cost."""
    table = study.confusion
    if table is None or not (total := int(table.to_numpy().sum())):
        return []
    right = sum(int(table.loc[name, name]) for name in table.index if name in table.columns)
    told = f"The pipeline gave {right} of {total} labelled questions the dataset's class ({right / total:.0%})"
    if study.mistakes is None or study.mistakes.empty:
        return [f"{told}."]
    row = study.mistakes.iloc[0]
    if not row["n_routed_otherwise"]:
        return [f"{told}; no mistake sent a question to another arm."]
    cost, low, high = (number(row[name]) for name in ("cost", "low", "high"))
    if cost is None or low is None or high is None:
        does = f"cost {with_interval(row['cost'], low, high)} a question on average"
    elif cost == low == high == 0:
        does = "changed no score"
    else:
        does = f"cost {plain(cost)} [{signed_interval(low, high)}]"
        if cost < 0:
            does = f"gained {plain(-cost)} [{signed_interval(-high, -low)}]"
        unclear = "" if low > 0 or high < 0 else " (the data cannot tell it from chance)"
        does = f"{does}{unclear} a question on average"
    moved = f"its mistakes sent {row['n_routed_otherwise']} of {row['n']} to another arm"
    return [f"{told}; {moved}, which {does}."]
