"""Effects, fronts and pairs of variants as figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rag_lab._kit.wording import counted, number
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.conclusions import COST_NAMES, share_of_resamples
from rag_lab.comparison.tables.pareto import Cost, Front
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
    spread_labels,
)
from rag_lab.statistics.intervals import TIE
from rag_lab.statistics.scales import SHARE

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
    spread_labels(axes, [(_front_label(comparison, front, variant), x, y) for variant, x, y in points])


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


def _front_label(comparison: Comparison, front: Front, variant: str) -> str:
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


def paired_figure(comparison: Comparison, variant_id: str, metric: str | None = None) -> ShownFigure:
    """Plot a bar for each question, from most lost to most won, and the mean of all with its 95% interval.

    Raises:
        ConfigError: as `paired_questions`.
    """
    table = comparison.paired(variant_id, metric)
    name = metric or comparison.main_metric or ""
    gains = [float(gain) for gain in table["gain"]]
    won, lost = sum(gain > TIE for gain in gains), sum(gain < -TIE for gain in gains)
    told = f"{lost} lost, {len(gains) - won - lost} equal, {won} won"
    label = f"{comparison.label(variant_id)} against {comparison.label(comparison.run.baseline)}"
    figure, axes = new_figure(6.4, 2.9, f"Gain in {name} on each question, {label}: {told}.")
    colours = [ABOVE if gain > TIE else BELOW if gain < -TIE else SAME for gain in gains]
    axes.bar(range(len(gains)), gains, color=colours, width=0.85)
    axes.plot(range(len(gains)), [0] * len(gains), color=MUTED, linewidth=1)
    _mean(comparison, axes, variant_id, name)
    axes.set_xticks([])
    axes.set_xlim(-1, max(len(gains), 1))
    axes.set_xlabel(f"{counted(len(gains), 'question')}: {told}", loc="left")
    axes.set_ylabel(f"gain in {literal(name, 30)}")
    axes.set_title(literal(label), loc="left", fontsize=FONT_SIZE, color=INK)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    return figure


def _mean(comparison: Comparison, axes: Axes, variant_id: str, metric: str) -> None:
    """Draw the mean gain over the bars, with its interval as a band."""
    row = comparison.difference(variant_id, metric)
    if row is None or number(row["difference"]) is None:
        return
    sign = comparison.scales.get(metric, SHARE).sign
    low, high = number(row["low"]), number(row["high"])
    if low is not None and high is not None:
        axes.axhspan(sign * low, sign * high, color=SHADE, linewidth=0, zorder=0)
    mean = sign * float(row["difference"])
    axes.axhline(mean, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    # Bars go down at the left and up at the right: the number stands where there are none.
    place, side = (0.0, "left") if mean >= 0 else (1.0, "right")
    axes.annotate(
        f"mean {mean:+.3f}",
        (place, mean),
        (4 if mean >= 0 else -4, 3 if mean >= 0 else -3),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        ha=side,
        va="bottom" if mean >= 0 else "top",
        color=INK,
        fontsize=FONT_SIZE,
    )
