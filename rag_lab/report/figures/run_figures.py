"""The figures of the report, as matplotlib figures; notebooks show the same ones.

Colours are of Okabe and Ito's palette, which colour-blind readers can tell apart, and no meaning rests on colour alone.
pyplot is not used, so no global state changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_lab._kit.numbers import number
from rag_lab.comparison.comparison import Comparison
from rag_lab.report.figures.figure_style import (
    ABOVE,
    BELOW,
    GRID,
    INK,
    MUTED,
    SAME,
    SHADE,
    literal,
    new_figure,
    variant_name,
)
from rag_lab.statistics.scales import SHARE

_LEAST_TINTED = 10  # questions of a class

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rag_lab.report.figures.figure_style import ShownFigure


def quality_figure(comparison: Comparison, metric: str) -> ShownFigure:
    """Plot mean and 95% interval of `metric` for each variant, best read against the baseline's line."""
    plans = [plan for plan in comparison.variants if _mean(comparison, plan.variant_id, metric) is not None]
    alt = f"Mean and 95% interval of {metric} for each variant; the numbers stand in the table of scores."
    figure, axes = new_figure(4.6, 0.62 + 0.3 * max(len(plans), 2), alt)
    base = comparison.cell(comparison.run.baseline, metric)
    if base is not None and number(base["mean"]) is not None:
        _baseline(axes, base)
    for row, plan in enumerate(plans):
        cell = comparison.cell(plan.variant_id, metric) or {}
        _dot_with_interval(axes, row, cell, _mark(comparison, plan.variant_id, metric))
    labels = [variant_name(comparison, plan.variant_id) for plan in plans]
    axes.set_yticks(range(len(plans)), labels)
    axes.set_ylim(max(len(plans), 1) - 0.5, -0.5)
    axes.set_xlabel(literal(comparison.directed(metric)), loc="right")
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    return figure


def class_figure(comparison: Comparison, metric: str) -> ShownFigure:
    """Tabulate the mean of `metric` by variant and labelled query class, tinted by what is better than the baseline.

    A class of few questions has no tint: what looks better there is chance.
    """
    table = comparison.by_class[comparison.by_class["metric"] == metric]
    classes = list(dict.fromkeys(table["query_class"]))
    plans = [plan for plan in comparison.variants if plan.variant_id in set(table["variant_id"])]
    means = {(r.variant_id, r.query_class): number(r.mean) for r in table.itertuples()}
    enough = {name for name in classes if _counts(table, name)[0] >= _LEAST_TINTED}
    sign = comparison.scales.get(metric, SHARE).sign
    alt = f"Mean of {metric} by variant and query class; the numbers stand in its tiles."
    figure, axes = new_figure(1.4 + 1.0 * max(len(classes), 1) + 1.2, 0.75 + 0.32 * max(len(plans), 1), alt)
    for row, plan in enumerate(plans):
        for column, name in enumerate(classes):
            base = means.get((comparison.run.baseline, name)) if name in enough else None
            _tile(axes, row, column, means.get((plan.variant_id, name)), base, sign)
    axes.set_xticks(range(len(classes)), [f"{name}\n{_count(table, name)}" for name in classes])
    axes.set_yticks(range(len(plans)), [variant_name(comparison, plan.variant_id) for plan in plans])
    axes.set_xlim(-0.5, len(classes) - 0.5)
    axes.set_ylim(len(plans) - 0.5, -0.5)
    axes.xaxis.tick_top()
    axes.spines[:].set_visible(False)
    return figure


def _mean(comparison: Comparison, variant: str, metric: str) -> float | None:
    cell = comparison.cell(variant, metric)
    return number(cell["mean"]) if cell else None


def _mark(comparison: Comparison, variant: str, metric: str) -> tuple[str, str]:
    """Return colour and marker: the baseline, reliably better, reliably worse, or no reliable difference."""
    if variant == comparison.run.baseline:
        return INK, "D"
    return {1: (ABOVE, "^"), -1: (BELOW, "v"), 0: (SAME, "o")}[comparison.reliable(variant, metric)]


def _baseline(axes: Axes, cell: dict[str, Any]) -> None:
    low, high = number(cell["low"]), number(cell["high"])
    if low is not None and high is not None:
        axes.axvspan(low, high, color=SHADE, linewidth=0, zorder=0)
    axes.axvline(float(cell["mean"]), color=MUTED, linewidth=1, linestyle=(0, (4, 3)), zorder=1)


def _dot_with_interval(axes: Axes, row: int, cell: dict[str, Any], mark: tuple[str, str]) -> None:
    low, high = number(cell["low"]), number(cell["high"])
    if low is not None and high is not None:
        axes.plot([low, high], [row, row], color=mark[0], linewidth=2, solid_capstyle="butt", zorder=2)
    axes.plot([float(cell["mean"])], [row], marker=mark[1], color=mark[0], markersize=7, linestyle="none", zorder=3)


def _tile(axes: Axes, row: int, column: int, mean: float | None, base: float | None, sign: int) -> None:
    from matplotlib.patches import Rectangle

    change = 0.0 if mean is None or base is None else sign * (mean - base)
    colour, strength = (ABOVE if change > 0 else BELOW), min(abs(change) / 0.25, 1) * 0.55
    axes.add_patch(Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, color=colour, alpha=strength, linewidth=0))
    axes.text(column, row, "–" if mean is None else f"{mean:.2f}", ha="center", va="center", color=INK, fontsize=9)


def _counts(table: Any, name: str) -> tuple[int, int]:
    counts = table[table["query_class"] == name]["scored"]
    return int(counts.min()), int(counts.max())


def _count(table: Any, name: str) -> str:
    """Write how many questions of a class were scored; a range where variants differ."""
    low, high = _counts(table, name)
    return f"n = {low}" if low == high else f"n = {low} to {high}"
