"""The figures of the report, as matplotlib figures; notebooks show the same ones.

Colours are of Okabe and Ito's palette, which colour-blind readers can tell apart, and no meaning rests on colour alone.
pyplot is not used, so no global state changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_lab._kit.wording import number
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.evidence_sentences import state_names
from rag_lab.comparison.tables.evidence import State
from rag_lab.report.figures import figure_style as look
from rag_lab.report.figures.figure_style import ABOVE, BELOW, FONT_SIZE, INK, MUTED, SAME, SHADE, literal, variant_name
from rag_lab.statistics.scales import SHARE

if TYPE_CHECKING:
    from rag_lab.report.figures.figure_style import ShownFigure


_LEAST_TINTED = 10  # questions of a class
_WIDTH_INCHES = 7.6
_BAR_INCHES = 5.2  # about what is left for the bars beside the names of variants
_CHAR_INCHES = 0.075  # of a label in a bar
# How a state is filled: a colour, and its strength so that the ink of the labels can be read on it.
_FILLS: dict[State, tuple[str, float]] = {
    "not_indexed": (INK, 1.0),
    "not_found": (MUTED, 0.45),
    "merging": (BELOW, 0.55),
    "reranking": (BELOW, 0.42),
    "selection": (BELOW, 0.3),
    "budget": (BELOW, 0.18),
    "not_answered": (SAME, 0.2),
    "unused": (ABOVE, 0.25),
    "used": (ABOVE, 0.5),
}


def quality_figure(comparison: Comparison, metric: str) -> ShownFigure:
    """Plot mean and 95% interval of `metric` for each variant, best read against the baseline's line."""
    cells = {plan.variant_id: comparison.cell(plan.variant_id, metric) for plan in comparison.variants}
    means = {name: cell for name, cell in cells.items() if cell and number(cell["mean"]) is not None}
    alt = f"Mean and 95% interval of {metric} for each variant; the numbers stand in the table of scores."
    figure, axes = look.new_figure(4.6, 0.62 + 0.3 * max(len(means), 2), alt)
    baseline = comparison.run.baseline
    if baseline in means:
        low, high = number(means[baseline]["low"]), number(means[baseline]["high"])
        if low is not None and high is not None:
            axes.axvspan(low, high, color=SHADE, linewidth=0, zorder=0)
        axes.axvline(float(means[baseline]["mean"]), color=MUTED, linewidth=1, linestyle=look.DASHED, zorder=1)
    for row, (name, cell) in enumerate(means.items()):
        # Reliably better or worse than the baseline, or neither.
        colour, marker = {1: (ABOVE, "^"), -1: (BELOW, "v"), 0: (SAME, "o")}[comparison.reliable(name, metric)]
        if name == baseline:
            colour, marker = INK, "D"
        look.draw_interval(axes, cell, row, colour)
        mean = float(cell["mean"])
        axes.plot([mean], [row], marker=marker, color=colour, markersize=7, linestyle="none", zorder=3)
    axes.set_yticks(range(len(means)), [variant_name(comparison, name) for name in means])
    axes.set_ylim(max(len(means), 1) - 0.5, -0.5)
    axes.set_xlabel(literal(comparison.directed(metric)), loc="right")
    axes.grid(axis="x", color=look.GRID, linewidth=0.8)
    return figure


def class_figure(comparison: Comparison, metric: str) -> ShownFigure:
    """Tabulate the mean of `metric` by variant and labelled query class, tinted by what is better than the baseline.

    A class of few questions has no tint: what looks better there is chance.
    """
    from matplotlib.patches import Rectangle

    table = comparison.by_class[comparison.by_class["metric"] == metric]
    plans = [plan for plan in comparison.variants if plan.variant_id in set(table["variant_id"])]
    means = {(r.variant_id, r.query_class): number(r.mean) for r in table.itertuples()}
    scored = table.groupby("query_class", sort=False)["scored"]  # how many questions, by class; variants may differ
    counts = {str(name): (int(of_class.min()), int(of_class.max())) for name, of_class in scored}
    sign = comparison.scales.get(metric, SHARE).sign
    alt = f"Mean of {metric} by variant and query class; the numbers stand in its tiles."
    figure, axes = look.new_figure(1.4 + 1.0 * max(len(counts), 1) + 1.2, 0.75 + 0.32 * max(len(plans), 1), alt)
    for row, plan in enumerate(plans):
        for column, (name, (least, _)) in enumerate(counts.items()):
            mean, base = means.get((plan.variant_id, name)), means.get((comparison.run.baseline, name))
            change = 0.0 if mean is None or base is None or least < _LEAST_TINTED else sign * (mean - base)
            colour, strength = (ABOVE if change > 0 else BELOW), min(abs(change) / 0.25, 1) * 0.55
            tile = Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, color=colour, alpha=strength, linewidth=0)
            axes.add_patch(tile)
            text = "–" if mean is None else f"{mean:.2f}"
            axes.text(column, row, text, ha="center", va="center", color=INK, fontsize=9)
    ticks = [f"{name}\nn = {low}" + (f" to {high}" if high > low else "") for name, (low, high) in counts.items()]
    axes.set_xticks(range(len(counts)), ticks)
    axes.set_yticks(range(len(plans)), [variant_name(comparison, plan.variant_id) for plan in plans])
    axes.set_xlim(-0.5, len(counts) - 0.5)
    axes.set_ylim(len(plans) - 0.5, -0.5)
    axes.xaxis.tick_top()
    axes.spines[:].set_visible(False)
    return figure


def evidence_figure(comparison: Comparison) -> ShownFigure:
    """Plot where the labelled pieces of evidence ended, a bar a variant; what a bar has room for stands in it."""
    from matplotlib.patches import Patch

    rows, names = comparison.evidence.by_variant.to_dict("records"), state_names(comparison.evidence)
    alt = "Where each labelled piece of evidence ended, a bar a variant; the numbers stand in the table."
    figure, axes = look.new_figure(_WIDTH_INCHES, 0.95 + 0.32 * max(len(rows), 2), alt)
    most = max((row["items"] for row in rows), default=1)
    for place, row in enumerate(rows):
        left = 0
        for state, name in names.items():
            count, (colour, strength) = row[state], _FILLS[state]
            axes.barh(place, count, 0.78, left, color=colour, alpha=strength, linewidth=0)
            axes.plot([left, left], [place - 0.39, place + 0.39], color=look.GRID, linewidth=0.8)
            room = count / most * _BAR_INCHES / _CHAR_INCHES
            text = next((text for text in (f"{name.short} {count}", f"{count}") if count and len(text) < room), "")
            style: dict[str, Any] = {"color": SHADE if colour == INK else INK, "fontsize": FONT_SIZE - 1}
            axes.text(left + count / 2, place, text, ha="center", va="center", **style)
            left += count
    axes.set_yticks(range(len(rows)), [variant_name(comparison, row["variant_id"]) for row in rows])
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xlim(0, most)
    axes.set_xlabel("labelled pieces of evidence", loc="right")
    axes.spines[:].set_visible(False)
    # The fillings are named above the bars, in the order in which they stand in them.
    axes.legend(
        handles=[Patch(facecolor=_FILLS[s][0], alpha=_FILLS[s][1], label=name.name) for s, name in names.items()],
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
    return figure
