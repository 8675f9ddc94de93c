"""What quality costs, as a table."""

from __future__ import annotations

from rag_lab._kit.numbers import DASH, plain, seconds
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.front.front_sentences import COST_NAMES, share_of_resamples
from rag_lab.comparison.front.pareto_front import Cost, Front
from rag_lab.report.tables.table import Table

_HEADERS: dict[Cost, str] = {"seconds": "seconds", "tokens": "tokens", "usd": "dollars per 1,000"}


def front_table(comparison: Comparison) -> Table:
    """Return a row a variant: quality, what a question takes, and whether it is on each front; no rows without one."""
    found = comparison.front
    metric = comparison.directed(comparison.main_metric or "")
    header = ("variant", metric, *(_HEADERS[cost] for cost in found.costs), *map(_named, found.fronts))
    rows = tuple(
        (
            comparison.name(variant),
            plain(found.quality[variant].mean),
            *(amount(comparison, variant, cost) for cost in found.costs),
            *(_place(front, variant) for front in found.fronts),
        )
        for variant in found.prices
        if found.fronts
    )
    return Table("What quality costs: who is on the front, and in what share of resamples", header, rows)


def amount(comparison: Comparison, variant: str, cost: Cost) -> str:
    """Write what a question takes under a variant, without the unit; dollars of a thousand questions."""
    price = comparison.front.prices[variant]
    if cost == "seconds":
        return seconds(price.seconds)
    if cost == "tokens":
        return DASH if price.tokens is None else f"{price.tokens:,.0f}"
    return DASH if price.usd is None else f"{1000 * price.usd:,.2f}"


def _named(front: Front) -> str:
    return f"front: {COST_NAMES[front.costs[0]] if len(front.costs) == 1 else 'together'}"


def _place(front: Front, variant: str) -> str:
    share = f" ({share_of_resamples(front.shares[variant])})" if variant in front.shares else ""
    return ("on" if variant in front.members else "off") + share
