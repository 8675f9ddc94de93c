"""Which metrics of a plan cannot measure what they are asked to, said before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_lab.evaluation.foreseen import Foreseen, foreseen_gaps
from rag_lab.evaluation.shallow import shallow

if TYPE_CHECKING:
    from rag_lab.experiment.plan import Plan


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
