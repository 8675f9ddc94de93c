"""What a plan would do, as text for `rag-lab sweep --dry-run`, and which metrics cannot measure what they should."""

from __future__ import annotations

from rag_lab._kit.text_table import text_table
from rag_lab.data.clusters import clusters_of, clusters_told
from rag_lab.evaluation.foreseen import Foreseen, foreseen_gaps
from rag_lab.evaluation.shallow import shallow
from rag_lab.experiment.design import Variant
from rag_lab.experiment.forecast.bill_text import bill_text
from rag_lab.experiment.forecast.estimate import estimate
from rag_lab.experiment.model_checks import models_used
from rag_lab.experiment.plan import Plan
from rag_lab.runs.asked import asked_told


def describe(plan: Plan) -> str:
    """Return the variants, the questions, the bill, models and metrics. Nothing is run to find out."""
    limits = plan.experiment.limits
    parts = [
        f"{plan.experiment.name}: {plan.experiment.question}",
        _questions(plan),
        f"{len(plan.variants)} variants ({plan.experiment.design}):\n{_variants(plan)}",
        f"What is left to do, counted once where variants share it:\n{bill_text(estimate(plan), limits)}",
        f"Models:{_models(plan)}",
        f"Metrics: {', '.join(plan.experiment.metrics)}",
        *(f"Note: {notice}" for notice in (*plan.expansion.notices, *too_deep(plan))),
        *(["\n".join(sentences)] if (sentences := not_applicable(plan)) else []),
        *(f"Left out: {problem}" for problem in plan.dataset.problems),
    ]
    return "\n\n".join(parts)


def _questions(plan: Plan) -> str:
    repeats = plan.experiment.repeats
    times = "once" if repeats == 1 else f"{repeats} times"
    asked = (
        f"Dataset {plan.experiment.dataset}: {asked_told(len(plan.questions), plan.left_out)} Each is asked {times}, "
        f"{len(plan.answered)} of them are answered."
    )
    rule = plan.experiment.clusters
    clusters = clusters_of(plan.dataset.questions, rule)
    return asked if clusters is None else f"{asked} {clusters_told(plan.questions, clusters, rule)}"


def _variants(plan: Plan) -> str:
    return text_table(("variant", "differs from the baseline in"), [(v.variant_id, _changes(v)) for v in plan.variants])


def _changes(variant: Variant) -> str:
    return ", ".join(f"{key} = {value}" for key, value in variant.changes.items()) or "-"


def _models(plan: Plan) -> str:
    metrics = plan.experiment.metrics
    used = {(role, spec) for v in plan.variants for role, spec in models_used(v.config, metrics).items()}
    if plan.experiment.judge is not None:
        used.add(("judge", plan.experiment.judge))
    return "\n" + text_table(("role", "model"), sorted(used)) if used else " none"


def not_applicable(plan: Plan) -> list[str]:
    """Return one sentence for each metric and reason; it names the variants where they are not all."""
    asked = set(plan.questions)
    questions = [question for question in plan.dataset.questions if question.question_id in asked]
    variants_of: dict[Foreseen, list[str]] = {}
    for variant in plan.variants:
        answered = plan.answered if variant.config.answer.is_on else ()
        for gap in foreseen_gaps(plan.experiment.metrics, questions, set(answered)):
            variants_of.setdefault(gap, []).append(variant.variant_id)
    return [_sentence(gap, names, len(plan.variants)) for gap, names in variants_of.items()]


def too_deep(plan: Plan) -> list[str]:
    """Return one sentence for each metric with a cut-off that is deeper than the rankings of a variant can be."""
    configs = {variant.variant_id: variant.config for variant in plan.variants}
    return [str(found) for found in shallow(plan.experiment.metrics, configs).values()]


def _sentence(gap: Foreseen, variants: list[str], n_variants: int) -> str:
    if len(variants) == n_variants:
        return str(gap)
    return f"{str(gap)[:-1]} (in {', '.join(variants)})."
