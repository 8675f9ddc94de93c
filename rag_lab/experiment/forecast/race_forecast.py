"""What a race would do at most: its rounds, and the sweeps of its bill, as nobody knows who will stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rag_lab.experiment.design import Variant
from rag_lab.experiment.forecast.foreseen_work import Work
from rag_lab.experiment.forecast.search_forecast import is_search, search_notes, search_rows
from rag_lab.experiment.plan import Plan
from rag_lab.experiment.race.rounds import deciding_metric, full_plan, kept_after_rounds, proof_plan, round_plan

ROUND_HEADER = ("round", "questions", "new", "variants", "stay")
Foresee = Callable[[Sequence[Plan], Path], list[Work]]


def sweeps_of(plan: Plan, home: Path, foresee: Foresee) -> list[Plan]:
    """Return the sweeps of which a plan's bill is made: itself, or the rounds and the proof of a race or a search.

    After the first round those variants stay whose proof alone would take the most calls and tokens.
    """
    if not plan.rounds:
        return [plan]
    alone = {one.variant_id: _work(_alone(plan, one), home, foresee) for one in plan.variants[1:]}
    left = sorted(alone, key=lambda name: alone[name], reverse=True)
    if is_search(plan):
        return [round_plan(plan, 1, left), proof_plan(plan, left[0])]
    parts = []
    for number, n_kept in enumerate(kept_after_rounds(plan), start=1):
        parts.append(round_plan(plan, number, left))
        left = left[:n_kept]
    return [*parts, proof_plan(plan, left[0])]


def _alone(plan: Plan, variant: Variant) -> Plan:
    return replace(plan, expansion=replace(plan.expansion, variants=(variant,)), rounds=())


def _work(plan: Plan, home: Path, foresee: Foresee) -> tuple[int, int]:
    rows = foresee([plan], home)
    return sum(row.calls for row in rows), sum(row.tokens for row in rows)


def round_rows(plan: Plan) -> list[tuple[str, ...]]:
    """Return a row of `ROUND_HEADER` for each round that is run and for the proof."""
    if is_search(plan):
        return search_rows(plan)
    *rounds, (n_proof, _, n_proven) = _counts(plan)
    stay = [n_variants for _, _, n_variants in rounds[1:]] + [n_proven]
    rows = [
        (str(number), *(f"{n:,}" for n in (*counts, n_stay)))
        for number, (counts, n_stay) in enumerate(zip(rounds, stay, strict=True), start=1)
    ]
    return [*rows, ("proof", f"{n_proof:,}", f"{n_proof:,}", str(n_proven), "")]


def _counts(plan: Plan) -> list[tuple[int, int, int]]:
    """Return the questions, the new ones among them, and the variants of each round that is run and of the proof."""
    counts, n_left, before = [], len(plan.variants), 0
    for n_kept, questions in zip(kept_after_rounds(plan), plan.rounds, strict=False):
        counts.append((len(questions), len(questions) - before, n_left))
        n_left, before = n_kept + 1, len(questions)
    return [*counts, (len(plan.questions), len(plan.questions), n_left)]


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
        f"Each round measures {deciding_metric(plan).name} alone and keeps the baseline and the variants with the best "
        "means; the winner and the baseline are then asked the questions of the proof, which chose nothing. Dropped "
        "variants have no proof. What is left to do is counted as if those stayed that take the most calls.",
        f"A variant is asked a question {asked:,} times; all variants on all {len(whole.questions):,} questions would "
        f"be {full:,} times, so that {1 - asked / full:.0%} are saved.",
    ]
