"""What of the reachable gain the variants reach, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from rag_lab._kit.wording import counted, listing, plain
from rag_lab.comparison.bounds.bound_arms import BOUNDS, bound_arms
from rag_lab.comparison.bounds.reachable_gain import Reach
from rag_lab.comparison.comparison import Comparison
from rag_lab.stages.answer.bound_contexts import NEAREST


def share_of_gain(value: float) -> str:
    """Write a share of the reachable gain, which may be negative or above one: `38%`."""
    return f"{100 * value:.0f}%"


def gain_told(comparison: Comparison) -> list[str]:
    """Return a sentence on each variant in the first metric that reads answers, and who is a bound; none without."""
    arms = bound_arms(comparison)
    if not arms:
        return []
    named = [f"{comparison.called(one)} reads {BOUNDS[kind]}{_guessed(comparison, one)}" for one, kind in arms.items()]
    bounds = f"Bounds, which are not recommended: {'; '.join(named)}."
    first = [one for one in comparison.gain if one.metric == comparison.gain[0].metric]
    told = [_told(comparison, one, one.means) for one in first if one.means is not None]
    return [bounds, *told, *_without_bounds(comparison, [one for one in first if one.means is None])]


def _guessed(comparison: Comparison, variant: str) -> str:
    """Say of how many questions a bound had to take the passages nearest to the answer for the evidence."""
    traces = comparison.traces.get(variant, [])
    n = sum(any(NEAREST in record.reason for record in trace.stages) for trace in traces)
    return (
        f" (of {n:,} of {len(traces):,} questions, whose labels name files or pages, the nearest passages)" if n else ""
    )


def _without_bounds(comparison: Comparison, missing: Sequence[Reach]) -> list[str]:
    """Name the variants of which no share can be told, once for each reason."""
    by_reason: dict[str, list[str]] = {}
    for one in missing:
        by_reason.setdefault(one.found.reason, []).append(comparison.called(one.variant_id))
    return [f"No share of the gain is told of {listing(names)}: {reason}." for reason, names in by_reason.items()]


def _told(comparison: Comparison, one: Reach, bounds: tuple[float, float, float]) -> str:
    name, metric = comparison.called(one.variant_id), comparison.directed(one.metric)
    floor, value, ceiling = (plain(mean) for mean in bounds)
    means = f"{value}, between {floor} of a closed book and {ceiling} of the labelled evidence"
    over = counted(one.found.n, "question")
    if one.found.share is None or one.found.low is None or one.found.high is None:
        return f"{name} has {means} in {metric} over {over}; the share of the gain is not told: {one.found.reason}."
    ends = f"{share_of_gain(one.found.low)} to {share_of_gain(one.found.high)}"
    return f"{name} reaches {share_of_gain(one.found.share)} [{ends}] of the gain in {metric}: {means}, over {over}."
