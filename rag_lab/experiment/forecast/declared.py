"""What an experiment declares before it is run, and what cannot be concluded of it, however it ends."""

from __future__ import annotations

from rag_lab._kit.wording import counted, listing
from rag_lab.comparison.cut_offs import half_told, not_compared
from rag_lab.evaluation.cutoff_caveats import comparable
from rag_lab.evaluation.registry import ParsedName
from rag_lab.experiment.forecast.measured import measured_questions, n_units
from rag_lab.experiment.plan import Plan
from rag_lab.statistics.randomization import smallest_n
from rag_lab.statistics.verdict import ALPHA

_FEWEST = smallest_n(ALPHA)
_NAMED = 5  # pairs that are written out


def not_compared_told(plan: Plan) -> str:
    """Say that half of the variants, or more, cannot be compared with the baseline in the primary metric; else ""."""
    primary, baseline = _decides(plan), plan.expansion.baseline.variant_id
    if primary is None:
        return ""
    configs = {variant.variant_id: variant.config for variant in plan.variants}
    return half_told([not_compared(primary.name, configs, (one, baseline)) for one in configs if one != baseline])


def declared_told(plan: Plan) -> list[str]:
    """Return what is primary, at which level, the margins, and one sentence for each thing that cannot be concluded."""
    primary = _decides(plan)
    if primary is None:
        return ["Nothing is primary: no metric says which variant is better, so that none will be called better."]
    if len(plan.variants) == 1:
        return [f"Primary: {primary.name}, of one variant; nothing is compared."]
    return [f"{_primary(plan, primary.name)} {_level(plan)}", _margins(plan, primary), *_limits(plan, primary)]


def _decides(plan: Plan) -> ParsedName | None:
    return next((metric for metric in plan.metrics if not metric.info.is_cost), None)


def _primary(plan: Plan, metric: str) -> str:
    return f"Primary: {metric}, {_family(plan, metric)}; all else is secondary."


def _comparable(plan: Plan, metric: str) -> list[tuple[str, str]]:
    """Return the pairs that the design declares and of which the metric sees as many ranks."""
    configs = {variant.variant_id: variant.config for variant in plan.variants}
    return [(one, other) for one, other in plan.pairs if comparable(metric, configs[one], configs[other])]


def _family(plan: Plan, metric: str) -> str:
    pairs = _comparable(plan, metric)
    given, n = plan.experiment, counted(len(pairs), "comparison")
    if plan.rounds:
        return (
            "the winner of the race against the baseline, one comparison"
            if given.design == "racing"
            else ("what is chosen against the baseline, one comparison on questions that chose nothing")
        )
    if given.design == "grid" and len(given.factors) > 1:
        return "the main effects and interactions of the grid"
    if given.design == "fractional" and len(given.factors) > 1:
        return "the effects that the fraction can tell"
    if given.design != "list" or given.pairs == "baseline":
        return f"{n} with the baseline"
    if isinstance(given.pairs, tuple):
        named = [f"{variant} against {against}" for variant, against in pairs]
        more = [f"{len(named) - _NAMED} more"] if len(named) > _NAMED else []
        return f"{n}: {listing([*named[:_NAMED], *more])}"
    return f"{n}, every pair of variants"


def _level(plan: Plan) -> str:
    if plan.experiment.strict:
        return (
            "Strict: of 5% for all that is called a difference by chance, 4% are for what is primary, 1% for the rest."
        )
    return "Each of the two has its own 5% for what is called a difference by chance."


def _margins(plan: Plan, primary: ParsedName) -> str:
    if not plan.margins:
        example = "0.05" if (primary.info.low, primary.info.high) == (0.0, 1.0) else "..."
        return (
            "No margin is declared, so that of no variant it can be said that it may be left out: give the largest "
            f"loss that you would bear, as in `margin: {{{primary.name}: {example}}}`."
        )
    told = listing([f"{margin:g} in {metric}" for metric, margin in plan.margins.items()])
    return f"Margin: {told}; what is not worse by more may be left out."


def _limits(plan: Plan, primary: ParsedName) -> list[str]:
    told = []
    if primary.info.scale.worst is None:
        told.append(
            f"{primary.name} has no worst value: what fails cannot be counted as one, so that where anything fails "
            "neither a difference can be called reliable nor a variant be left out."
        )
    if (n := n_units(plan, measured_questions(plan, primary))) < _FEWEST:
        what = counted(n, "question") if plan.experiment.clusters == "none" else f"{n} clusters and single questions"
        told.append(
            f"{primary.name} can be measured on {what} alone: with fewer than {_FEWEST} no difference can be told from "
            "chance."
        )
    return told
