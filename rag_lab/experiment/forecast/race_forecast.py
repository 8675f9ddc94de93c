"""What a race would do at most: its rounds, and the sweeps of its bill, as nobody knows who will stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rag_lab.experiment.design import Variant
from rag_lab.experiment.forecast.foreseen_work import Work
from rag_lab.experiment.forecast.search_forecast import is_search, search_notes, search_rows
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.race.rounds import deciding_metric, full_plan, proof_plan, round_plan

ROUND_HEADER = ("round", "questions", "new", "variants")
Foresee = Callable[[Sequence[Plan], Path], list[Work]]


def sweeps_of(plan: Plan, home: Path, foresee: Foresee) -> list[Plan]:
    """Return the sweeps of which a plan's bill is made: itself, or the rounds and the proof of a race or a search.

    Nobody is dropped, which is the most it can take, and that variant wins whose proof takes the most calls and tokens.
    """
    if not plan.rounds:
        return [plan]
    alone = {one.variant_id: _work(_alone(plan, one), home, foresee) for one in plan.variants[1:]}
    left = sorted(alone, key=lambda name: alone[name], reverse=True)
    if is_search(plan):
        return [round_plan(plan, 1, left), proof_plan(plan, left[0])]
    rounds = [round_plan(plan, number, left) for number in range(1, len(plan.rounds) + 1)]
    return [*rounds, proof_plan(plan, left[0])]


def _alone(plan: Plan, variant: Variant) -> Plan:
    return replace(plan, expansion=replace(plan.expansion, variants=(variant,)), rounds=())


def _work(plan: Plan, home: Path, foresee: Foresee) -> tuple[int, int]:
    rows = foresee([plan], home)
    return sum(row.calls for row in rows), sum(row.tokens for row in rows)


def round_rows(plan: Plan) -> list[tuple[str, ...]]:
    """Return a row of `ROUND_HEADER` for each round and for the proof."""
    if is_search(plan):
        return search_rows(plan)
    names = [*(str(number) for number in range(1, len(plan.rounds) + 1)), "proof"]
    return [(name, *(f"{n:,}" for n in counts)) for name, counts in zip(names, _counts(plan), strict=True)]


def _counts(plan: Plan) -> list[tuple[int, int, int]]:
    """Return the questions, the new ones among them, and the most variants of each round, and of the proof."""
    sizes = [len(questions) for questions in plan.rounds]
    rounds = [(size, size - before, len(plan.variants)) for size, before in zip(sizes, [0, *sizes], strict=False)]
    return [*rounds, (len(plan.questions), len(plan.questions), 2)]


def race_notes(plan: Plan) -> list[str]:
    """Return what is to be known of a race before it runs; nothing where there is none."""
    if not plan.rounds:
        return []
    if is_search(plan):
        return search_notes(plan)
    repeats = plan.experiment.repeats
    asked = repeats * sum(n_new * n_variants for _, n_new, n_variants in _counts(plan))
    whole = full_plan(plan)
    full = repeats * len(whole.questions) * len(whole.variants)
    return [
        f"Each round measures {deciding_metric(plan).name} alone and drops who is shown to be worse than another, "
        "never the baseline; the best by its mean of those left and the baseline are then asked the questions of the "
        "proof, which chose nothing. Variants beside them have no proof. What is left to do is counted as if nobody "
        "were dropped.",
        f"A variant is asked a question {asked:,} times at most; all variants on all {len(whole.questions):,} "
        f"questions would be {full:,} times, so that {1 - asked / full:.0%} are saved at least.",
    ]
