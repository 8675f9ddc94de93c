"""The figure of quality against a cost: each variant with its interval, and the front that no other beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.front.front_sentences import COST_NAMES, share_of_resamples
from rag_lab.comparison.front.pareto_front import Cost, Front
from rag_lab.report.figures.figure_style import (
    ABOVE,
    GRID,
    MUTED,
    SAME,
    SHADE,
    literal,
    new_figure,
    spread_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rag_lab.report.figures.figure_style import ShownFigure

Point = tuple[str, float, float]  # variant_id, cost, quality
_AXES: dict[Cost, str] = {
    "seconds": "seconds per question (median)",
    "tokens": "tokens per question",
    "usd": "dollars per 1,000 questions",
}
_MARK_SIZE = 8
_TENFOLD = 10  # costs that span so much stand on a logarithmic axis


def front_figure(comparison: Comparison, cost: Cost = "seconds") -> ShownFigure:
    """Plot the main metric against what a question takes; empty where the variants do not differ in that cost.

    Filled blue marks are on the front, filled grey ones off it; hollow ones are on it in more than 5% and fewer than
    95% of the resamples, and say in how many.
    """
    metric, front = comparison.main_metric or "quality", comparison.front.against(cost)
    alt = f"Mean of {metric} against {COST_NAMES[cost]} per question, a mark for each variant, and the front of these."
    figure, axes = new_figure(6.4, 3.8, alt)
    points = _points(comparison, cost) if front else []
    if front:
        _draw(axes, comparison, front, points)
    axes.set_xlabel(_AXES[cost])
    axes.set_ylabel(literal(comparison.directed(metric), 40))
    axes.grid(color=GRID, linewidth=0.8)
    return figure


def _points(comparison: Comparison, cost: Cost) -> list[Point]:
    found = comparison.front
    times = 1000 if cost == "usd" else 1
    return [
        (variant, times * float(getattr(price, cost)), float(found.quality[variant].mean or 0.0))
        for variant, price in found.prices.items()
    ]


def _draw(axes: Axes, comparison: Comparison, front: Front, points: Sequence[Point]) -> None:
    for variant, x, y in points:
        interval = comparison.front.quality[variant]
        if interval.low is not None and interval.high is not None:
            axes.plot([x, x], [interval.low, interval.high], color=MUTED, linewidth=1, zorder=2)
        _mark(axes, front, variant, x, y)
    _scale(axes, [x for _, x, _ in points])
    _front_line(axes, front, points)
    spread_labels(axes, [(_label(comparison, front, variant), x, y) for variant, x, y in points])


def _mark(axes: Axes, front: Front, variant: str, x: float, y: float) -> None:
    colour = ABOVE if variant in front.members else SAME
    is_open = variant in front.leaving or variant in front.joining
    axes.plot(
        [x],
        [y],
        marker="o",
        color=colour,
        markerfacecolor=SHADE if is_open else colour,
        markeredgewidth=1.8,
        markersize=_MARK_SIZE,
        linestyle="none",
        zorder=4 if variant in front.members else 3,
    )


def _label(comparison: Comparison, front: Front, variant: str) -> str:
    code = comparison.codes[variant]
    is_open = variant in front.leaving or variant in front.joining
    return f"{code} {share_of_resamples(front.shares[variant])}" if is_open else code


def _front_line(axes: Axes, front: Front, points: Sequence[Point]) -> None:
    """Draw what quality the front gives at each cost: level until the next of its variants."""
    place = {variant: (x, y) for variant, x, y in points}
    steps = sorted(place[variant] for variant in front.members)
    right = axes.get_xlim()[1]
    xs, ys = [x for x, _ in steps] + [right], [y for _, y in steps] + [steps[-1][1]]
    axes.plot(xs, ys, drawstyle="steps-post", color=ABOVE, linewidth=1.2, alpha=0.6, zorder=1)


def _scale(axes: Axes, values: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if min(values) > 0 and max(values) / min(values) >= _TENFOLD:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlim(min(values) / 1.6, max(values) * 1.8)
    else:
        axes.set_xlim(0, max(values) * 1.18 or 1)
