"""Figures of effects: what each module adds, and how that changes beside another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rag_lab._kit.numbers import number
from rag_lab.report.figures.figure_style import ABOVE, BELOW, FONT_SIZE, GRID, INK, MUTED, SAME, literal, new_figure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from rag_lab.report.figures.figure_style import ShownFigure

LABEL_CHARS = 56
_STYLES = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
_COLOURS = (ABOVE, BELOW, INK, MUTED)


def forest_figure(effects: pd.DataFrame, metric: str) -> ShownFigure:
    """Plot the main effects (or toggles) of `metric` with 95% intervals, and below a line the interactions."""
    table = effects[(effects["metric"] == metric) & (effects["kind"] != "conditional")]
    rows = [row for row in table.to_dict("records") if number(row["effect"]) is not None]
    alt = f"Effect of each module on {metric} with its 95% interval."
    figure, axes = new_figure(6.4, 0.7 + 0.3 * max(len(rows), 2), alt)
    axes.axvline(0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    for place, row in enumerate(rows):
        _whisker(axes, row, place)
    n_single = sum(row["kind"] != "interaction" for row in rows)
    if 0 < n_single < len(rows):
        axes.axhline(n_single - 0.5, color=GRID, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [literal(_label(row), LABEL_CHARS) for row in rows])
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xlabel(f"effect on {literal(metric)}", loc="right")
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    return figure


def interaction_figure(effects: pd.DataFrame, metric: str, factor: str, other: str) -> ShownFigure:
    """Plot the effect of each level of `factor` on `metric`, with its interval, at each level of `other`."""
    table = effects[(effects["metric"] == metric) & (effects["kind"] == "conditional")]
    table = table[(table["factor"] == factor) & (table["other"] == other)]
    held, levels = list(dict.fromkeys(table["other_level"])), list(dict.fromkeys(table["level"]))
    alt = f"The effect of {factor} at each level of {other}, on {metric}, with 95% intervals."
    figure, axes = new_figure(1.8 + 1.3 * max(len(held), 2), 3.2, alt)
    axes.axhline(0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    for index, level in enumerate(levels):
        shift = 0.08 * (index - (len(levels) - 1) / 2)
        rows = table[table["level"] == level].to_dict("records")
        _line(axes, [(held.index(row["other_level"]) + shift, row) for row in rows], index, level)
    axes.set_xticks(range(len(held)), [literal(name, 24) for name in held])
    axes.set_xlim(-0.4, max(len(held), 1) - 0.6)
    axes.set_xlabel(literal(other))
    axes.set_ylabel(f"effect on {literal(metric, 30)}")
    if levels:
        legend = axes.legend(frameon=False, fontsize=FONT_SIZE, labelcolor=INK)
        legend.set_title(literal(factor))
        legend.get_title().set(color=INK, fontsize=FONT_SIZE)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    return figure


def _whisker(axes: Axes, row: dict[Any, Any], place: int) -> None:
    colour, marker = {"better": (ABOVE, "^"), "worse": (BELOW, "v")}.get(row["verdict"], (SAME, "o"))
    low, high = number(row["low"]), number(row["high"])
    if low is not None and high is not None:
        axes.plot([low, high], [place, place], color=colour, linewidth=2, solid_capstyle="butt", zorder=2)
    axes.plot([row["effect"]], [place], marker=marker, color=colour, markersize=7, linestyle="none", zorder=3)


def _line(axes: Axes, points: list[tuple[float, dict[Any, Any]]], index: int, level: str) -> None:
    seen = [(x, row) for x, row in points if number(row["effect"]) is not None]
    colour, style = _COLOURS[index % len(_COLOURS)], _STYLES[index % len(_STYLES)]
    for x, row in seen:
        low, high = number(row["low"]), number(row["high"])
        if low is not None and high is not None:
            axes.plot([x, x], [low, high], color=colour, linewidth=2, solid_capstyle="butt", zorder=2)
    places, values = [x for x, _ in seen], [row["effect"] for _, row in seen]
    axes.plot(
        places, values, marker="o", color=colour, linestyle=style, linewidth=1, markersize=6, label=literal(level, 24)
    )


def _label(row: dict[Any, Any]) -> str:
    own = f"{row['factor']}={row['level']}"
    return f"{own} × {row['other']}={row['other_level']}" if row["kind"] == "interaction" else own
