"""The figures of the report, as matplotlib figures; notebooks show the same ones.

Colours are of Okabe and Ito's palette, which colour-blind readers can tell apart, and no meaning rests on colour alone.
pyplot is not used, so no global state changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rag_lab._kit.wording import number
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.evidence_sentences import state_names
from rag_lab.comparison.tables.evidence import State
from rag_lab.report.figures.figure_style import (
    ABOVE,
    BELOW,
    FONT_SIZE,
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

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rag_lab.report.figures.figure_style import ShownFigure


_LEAST_TINTED = 10  # questions of a class


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


_WIDTH_INCHES = 7.6
_BAR_INCHES = 5.2  # about what is left for the bars beside the names of variants
_CHAR_INCHES = 0.075  # of a label in a bar


class _Look(NamedTuple):
    """How a state is filled: a colour and its strength, so that the ink of the labels can be read on it."""

    colour: str
    strength: float
    ink: str = INK


_LOOKS: dict[State, _Look] = {
    "not_indexed": _Look(INK, 1.0, SHADE),
    "not_found": _Look(MUTED, 0.45),
    "merging": _Look(BELOW, 0.55),
    "reranking": _Look(BELOW, 0.42),
    "selection": _Look(BELOW, 0.3),
    "budget": _Look(BELOW, 0.18),
    "not_answered": _Look(SAME, 0.2),
    "unused": _Look(ABOVE, 0.25),
    "used": _Look(ABOVE, 0.5),
}


def evidence_figure(comparison: Comparison) -> ShownFigure:
    """Plot where the labelled pieces of evidence ended, a bar a variant; what a bar has room for stands in it."""
    found = comparison.evidence
    rows = found.by_variant.to_dict("records")
    alt = "Where each labelled piece of evidence ended, a bar a variant; the numbers stand in the table."
    figure, axes = new_figure(_WIDTH_INCHES, 0.95 + 0.32 * max(len(rows), 2), alt)
    most = max((row["items"] for row in rows), default=1)
    for place, row in enumerate(rows):
        _bar(axes, comparison, place, row, most)
    axes.set_yticks(range(len(rows)), [variant_name(comparison, row["variant_id"]) for row in rows])
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xlim(0, most)
    axes.set_xlabel("labelled pieces of evidence", loc="right")
    axes.spines[:].set_visible(False)
    _key(axes, comparison)
    return figure


def _bar(axes: Axes, comparison: Comparison, place: int, row: dict[Any, Any], most: int) -> None:
    left = 0
    for state, name in state_names(comparison.evidence).items():
        count, look = row[state], _LOOKS[state]
        axes.barh(place, count, 0.78, left, color=look.colour, alpha=look.strength, linewidth=0)
        axes.plot([left, left], [place - 0.39, place + 0.39], color=GRID, linewidth=0.8)
        room = count / most * _BAR_INCHES / _CHAR_INCHES
        text = next((text for text in (f"{name.short} {count}", f"{count}") if count and len(text) < room), "")
        axes.text(left + count / 2, place, text, ha="center", va="center", color=look.ink, fontsize=FONT_SIZE - 1)
        left += count


def _key(axes: Axes, comparison: Comparison) -> None:
    """Name the fillings above the bars, in the order in which they stand in them."""
    from matplotlib.patches import Patch

    entries = [
        Patch(facecolor=_LOOKS[state].colour, alpha=_LOOKS[state].strength, label=name.name)
        for state, name in state_names(comparison.evidence).items()
    ]
    axes.legend(
        handles=entries,
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=4,
        frameon=False,
        fontsize=FONT_SIZE - 1,
        labelcolor=INK,
        handlelength=1.2,
        columnspacing=1.2,
        borderaxespad=0.2,
    )
