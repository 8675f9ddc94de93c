"""What a search is planned to do: its stages or trials, and its proof."""

from __future__ import annotations

from rag_lab.experiment.designs.stages import STAGED, stages_of
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.race.questions import SEARCHES
from rag_lab.experiment.race.rounds import aims, deciding_metric


def is_search(plan: Plan) -> bool:
    """Tell whether a plan makes its variants as it goes."""
    return plan.experiment.design in SEARCHES


def search_rows(plan: Plan) -> list[tuple[str, ...]]:
    """Return a row of `ROUND_HEADER` for each stage, or for all trials, and for the proof."""
    n, n_proof = f"{len(plan.rounds[0]):,}", f"{len(plan.questions):,}"
    proof = ("proof", n_proof, n_proof, "2")
    if plan.experiment.design != STAGED:
        return [("trials", n, n, f"{plan.experiment.n or 0:,}"), proof]
    rows = []
    for number, (stage, keys) in enumerate(stages_of(plan.experiment.factors).items(), start=1):
        others = [key for key in plan.experiment.factors if key not in keys]
        n_variants = sum(not any(key in others for key in variant.changes) for variant in plan.variants)
        rows.append((f"{number} {stage}", n, n if number == 1 else "0", f"{n_variants:,}"))
    return [*rows, proof]


def search_notes(plan: Plan) -> list[str]:
    """Return what is to be known of a search before it runs."""
    metric = deciding_metric(plan).name
    if plan.experiment.design == STAGED:
        how = (
            f"Each stage varies its factors beside what the stages before it have chosen, and the best mean in "
            f"{metric} is carried on; its variants are named, and counted below, as if no stage found anything better "
            "than the baseline."
        )
    else:
        names = " and ".join(one.name for one in aims(plan))
        how = (
            f"The trials are to improve {names}; which they are depends on their results. The variants that are named, "
            "and counted below, were drawn at random in their place."
        )
    return [
        how,
        f"The means that choose prove nothing. The best in {metric} and the baseline are then asked the questions of "
        "the proof, which chose nothing: one comparison.",
    ]
