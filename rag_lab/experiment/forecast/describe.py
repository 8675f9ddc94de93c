"""What a plan would do, as text for `rag-lab sweep --dry-run`."""

from __future__ import annotations

from rag_lab._kit.text_table import text_table
from rag_lab.data.clusters import clusters_of, clusters_told
from rag_lab.experiment.applicability import not_applicable, too_deep
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
