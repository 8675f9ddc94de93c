"""What is said of the fronts of quality against cost: who is on them, and who leaves or joins them by chance."""

from __future__ import annotations

from collections.abc import Mapping

from rag_lab._kit.wording import counted, listing, some_of
from rag_lab.comparison.advice.price import NOTICED_S, NOTICED_SHARE, NOTICED_TOKENS
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.front.pareto_front import SELDOM, Cost, Front

COST_NAMES: dict[Cost, str] = {"seconds": "seconds", "tokens": "tokens", "usd": "dollars"}
MEANING = (
    "On a front stands every variant that no other beats: none is at least as good at no higher cost, and better or "
    f"cheaper. A failed question counts as the worst value; less than {NOTICED_S} seconds, {NOTICED_TOKENS} tokens and "
    f"{NOTICED_SHARE:.0%} is no difference in cost."
)
_MOST = 4  # variants that are named with their share


def fronts_told(comparison: Comparison) -> list[str]:
    """Return a sentence a front, who has no place, and what is missing; none where nothing was measured."""
    found = comparison.front
    if comparison.main_metric is None:
        return []
    told = [_told(comparison, front) for front in found.fronts]
    reasons: dict[str, list[str]] = {}
    for variant, reason in found.left_out.items():
        reasons.setdefault(reason, []).append(comparison.codes[variant])
    out = [f"{some_of(codes)} ({reason})" for reason, codes in reasons.items()]
    return [*told, *([f"Without a place: {'; '.join(out)}."] if out else []), *([found.note] if found.note else [])]


def against_told(comparison: Comparison) -> list[str]:
    """Return the sentences on one cost each."""
    return [_told(comparison, front) for front in comparison.front.fronts if len(front.costs) == 1]


def share_of_resamples(share: float) -> str:
    """Write a share of resamples; what is not always is never written as 100%, nor what happens as 0%."""
    if 0 < share < 0.01 or 0.99 < share < 1:
        return "< 1%" if share < 0.5 else "> 99%"
    return f"{100 * share:.0f}%"


def _told(comparison: Comparison, front: Front) -> str:
    against = listing([COST_NAMES[cost] for cost in front.costs])
    together = " together" if len(front.costs) > 1 else ""
    members = some_of([comparison.codes[variant] for variant in front.members], 26)
    metric = comparison.directed(str(comparison.main_metric))
    return f"On the front of {metric} against {against}{together}: {members}; {_certainty(comparison, front)}."


def _certainty(comparison: Comparison, front: Front) -> str:
    if not front.shares:
        noun = "question" if comparison.clusters is None else "cluster"
        return f"{counted(comparison.front.n_units, noun)} cannot tell how certain that is"
    moves = [
        _moves(comparison, shares, verb)
        for shares, verb in ((front.leaving, "leaves"), (front.joining, "joins"))
        if shares
    ]
    if not moves:
        return f"no variant leaves or joins it in {share_of_resamples(SELDOM)} of resamples or more"
    return f"{', and '.join(moves)} of resamples, so the front is not certain"


def _moves(comparison: Comparison, shares: Mapping[str, float], verb: str) -> str:
    """Write who leaves or joins a front, the commonest first: `C leaves it in 38%, D in 12%`."""
    in_order = sorted(shares.items(), key=lambda item: -item[1])
    (first, share), *others = in_order
    told = [f"{comparison.codes[first]} {verb} it in {share_of_resamples(share)}"]
    told += [f"{comparison.codes[variant]} in {share_of_resamples(share)}" for variant, share in others]
    return some_of(told, _MOST)
