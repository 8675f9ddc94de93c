"""Effects, fronts and pairs of variants as figures."""

from typing import Any

import pandas as pd

from rag_lab._kit.wording import counted, number, signed
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.conclusions import COST_NAMES, share_of_resamples
from rag_lab.comparison.tables.pareto import Cost
from rag_lab.comparison.tables.studies import SumOfParts
from rag_lab.report import figures as look
from rag_lab.report.figures import ABOVE, BELOW, FONT_SIZE, INK, MUTED, SAME, SHADE, ShownFigure, literal
from rag_lab.statistics.intervals import TIE
from rag_lab.statistics.summaries import SHARE

LABEL_CHARS = 56
_STYLES = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
_COLOURS = (ABOVE, BELOW, INK, MUTED)
_AXES: dict[Cost, str] = {
    "seconds": "seconds per question (median)",
    "tokens": "tokens per question",
    "usd": "dollars per 1,000 questions",
}
_TENFOLD = 10  # costs that span so much stand on a logarithmic axis


def forest_figure(effects: pd.DataFrame, metric: str) -> ShownFigure:
    """Plot the main effects (or toggles) of `metric` with 95% intervals, and below a line the interactions."""
    table = effects[(effects["metric"] == metric) & (effects["kind"] != "conditional")]
    rows = [row for row in table.to_dict("records") if number(row["effect"]) is not None]
    alt = f"Effect of each module on {metric} with its 95% interval."
    figure, axes = look.new_figure(6.4, 0.7 + 0.3 * max(len(rows), 2), alt)
    axes.axvline(0, color=MUTED, linewidth=1, linestyle=look.DASHED, zorder=1)
    labels = []
    for place, row in enumerate(rows):
        colour, marker = {"better": (ABOVE, "^"), "worse": (BELOW, "v")}.get(row["verdict"], (SAME, "o"))
        look.draw_interval(axes, row, place, colour)
        axes.plot([row["effect"]], [place], marker=marker, color=colour, markersize=7, linestyle="none", zorder=3)
        other = f" × {row['other']}={row['other_level']}" if row["kind"] == "interaction" else ""
        labels.append(literal(f"{row['factor']}={row['level']}{other}", LABEL_CHARS))
    n_single = sum(row["kind"] != "interaction" for row in rows)
    if 0 < n_single < len(rows):
        axes.axhline(n_single - 0.5, color=look.GRID, linewidth=0.8)
    axes.set_yticks(range(len(rows)), labels)
    axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)
    axes.set_xlabel(f"effect on {literal(metric)}", loc="right")
    axes.grid(axis="x", color=look.GRID, linewidth=0.8)
    return figure


def parts_figure(found: SumOfParts) -> ShownFigure:
    """Plot the gains of single changes, one after the other on a bar, and below it that of all with its interval."""
    figure, axes = look.new_figure(6.4, 1.3, found.sentence)
    axes.axvline(0, color=MUTED, linewidth=1, linestyle=look.DASHED, zorder=1)
    ends = {1: 0.0, -1: 0.0}  # losses stand on the other side
    for number_, (name, gain) in enumerate(found.parts.items()):
        side = 1 if gain >= 0 else -1
        axes.barh(
            0, gain, left=ends[side], height=0.5, color=SHADE if number_ % 2 else SAME, edgecolor=INK, linewidth=0.6
        )
        axes.text(
            ends[side] + gain / 2, 0.42, literal(name, 24), ha="center", va="top", fontsize=FONT_SIZE - 2, color=INK
        )
        ends[side] += gain
    together = found.together.mean or 0.0
    axes.barh(1, together, height=0.5, color=ABOVE if together >= 0 else BELOW)
    row = {"low": found.together.low, "high": found.together.high}
    look.draw_interval(axes, row, 1, INK)
    axes.set_yticks([0, 1], [f"added up {signed(found.total)}", f"together {signed(together)}"])
    axes.set_ylim(1.5, -0.5)
    axes.set_xlabel(f"change of {literal(found.metric)}", loc="right")
    return figure


def interaction_figure(effects: pd.DataFrame, metric: str, factor: str, other: str) -> ShownFigure:
    """Plot the effect of each level of `factor` on `metric`, with its interval, at each level of `other`."""
    table = effects[(effects["metric"] == metric) & (effects["kind"] == "conditional")]
    table = table[(table["factor"] == factor) & (table["other"] == other)]
    others, levels = list(dict.fromkeys(table["other_level"])), list(dict.fromkeys(table["level"]))
    alt = f"The effect of {factor} at each level of {other}, on {metric}, with 95% intervals."
    figure, axes = look.new_figure(1.8 + 1.3 * max(len(others), 2), 3.2, alt)
    axes.axhline(0, color=MUTED, linewidth=1, linestyle=look.DASHED, zorder=1)
    for index, level in enumerate(levels):
        shift = 0.08 * (index - (len(levels) - 1) / 2)
        colour, style = _COLOURS[index % len(_COLOURS)], _STYLES[index % len(_STYLES)]
        xs, ys = [], []
        for row in table[table["level"] == level].to_dict("records"):
            if number(row["effect"]) is not None:
                xs.append(others.index(row["other_level"]) + shift)
                ys.append(row["effect"])
                look.draw_interval(axes, row, xs[-1], colour, upright=True)
        name = literal(level, 24)
        axes.plot(xs, ys, marker="o", color=colour, linestyle=style, linewidth=1, markersize=6, label=name)
    axes.set_xticks(range(len(others)), [literal(name, 24) for name in others])
    axes.set_xlim(-0.4, max(len(others), 1) - 0.6)
    axes.set_xlabel(literal(other))
    axes.set_ylabel(f"effect on {literal(metric, 30)}")
    if levels:
        legend = axes.legend(frameon=False, fontsize=FONT_SIZE, labelcolor=INK)
        legend.set_title(literal(factor))
        legend.get_title().set(color=INK, fontsize=FONT_SIZE)
    axes.grid(axis="y", color=look.GRID, linewidth=0.8)
    return figure


def growth_figure(comparison: Comparison) -> ShownFigure:
    """Plot the main metric of each pipeline, with its interval, at each number of distractors, equally far apart."""
    found, metric = comparison.growth, comparison.main_metric or "quality"
    curves, sizes = (found.curves, found.sizes) if found else ({}, ())
    figure, axes = look.new_figure(6.4, 3.2, f"Mean of {metric} of each pipeline by the number of distractors.")
    for index, (name, variants) in enumerate(curves.items()):
        colour, style = _COLOURS[index % len(_COLOURS)], _STYLES[index % len(_STYLES)]
        places = [sizes.index(size) + 0.06 * (index - (len(curves) - 1) / 2) for size in variants]
        cells = [comparison.cell(variant, metric) or {} for variant in variants.values()]
        for place, cell in zip(places, cells, strict=True):
            look.draw_interval(axes, cell, place, colour, upright=True)
        means = [float(cell["mean"]) for cell in cells]
        axes.plot(places, means, marker="o", color=colour, linestyle=style, linewidth=1.4, label=literal(name, 44))
    axes.set_xticks(range(len(sizes)), [f"{size:,}" for size in sizes])
    axes.set_xlabel("distractors", loc="right")
    axes.set_ylabel(literal(comparison.directed(metric), 40))
    axes.legend(frameon=False, fontsize=FONT_SIZE, labelcolor=INK, loc="upper left", bbox_to_anchor=(1, 1))
    axes.grid(axis="y", color=look.GRID, linewidth=0.8)
    return figure


def front_figure(comparison: Comparison, cost: Cost = "seconds") -> ShownFigure:
    """Plot the main metric against what a question takes; empty where the variants do not differ in that cost.

    Filled blue marks are on the front, filled grey ones off it; hollow ones are on it in more than 5% and fewer than
    95% of the resamples, and say in how many.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    metric, front = comparison.main_metric or "quality", comparison.front.against(cost)
    alt = f"Mean of {metric} against {COST_NAMES[cost]} per question, a mark for each variant, and the front of these."
    figure, axes = look.new_figure(6.4, 3.8, alt)
    if front:
        times, quality = 1000 if cost == "usd" else 1, comparison.front.quality
        spots: dict[str, tuple[float, float]] = {}
        labels = []
        for variant, price in comparison.front.prices.items():
            x, y = spots[variant] = times * float(getattr(price, cost)), float(quality[variant].mean or 0.0)
            low, high = quality[variant].low, quality[variant].high
            if low is not None and high is not None:
                axes.plot([x, x], [low, high], color=MUTED, linewidth=1, zorder=2)
            is_member, is_open = variant in front.members, any(variant in moves for moves in front.moves)
            colour = ABOVE if is_member else SAME
            style: dict[str, Any] = {"markerfacecolor": SHADE if is_open else colour, "markeredgewidth": 1.8}
            style |= {"marker": "o", "color": colour, "markersize": 8, "zorder": 4 if is_member else 3}
            axes.plot([x], [y], linestyle="none", **style)
            share = f" {share_of_resamples(front.shares[variant])}" if is_open else ""
            labels.append((f"{comparison.codes[variant]}{share}", x, y))
        costs = [x for x, _ in spots.values()]
        if min(costs) > 0 and max(costs) / min(costs) >= _TENFOLD:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set_xlim(min(costs) / 1.6, max(costs) * 1.8)
        else:
            axes.set_xlim(0, max(costs) * 1.18 or 1)
        # What quality the front gives at each cost: level until the next of its variants.
        steps = sorted(spots[variant] for variant in front.members)
        xs, ys = [*(x for x, _ in steps), axes.get_xlim()[1]], [*(y for _, y in steps), steps[-1][1]]
        axes.plot(xs, ys, drawstyle="steps-post", color=ABOVE, linewidth=1.2, alpha=0.6, zorder=1)
        look.spread_labels(axes, labels)
    axes.set_xlabel(_AXES[cost])
    axes.set_ylabel(literal(comparison.directed(metric), 40))
    axes.grid(color=look.GRID, linewidth=0.8)
    return figure


def paired_figure(comparison: Comparison, variant_id: str, metric: str | None = None) -> ShownFigure:
    """Plot a bar for each question, from most lost to most won, and the mean of all with its 95% interval."""
    table = comparison.paired(variant_id, metric)
    name = metric or comparison.main_metric or ""
    gains = [float(gain) for gain in table["gain"]]
    won, lost = sum(gain > TIE for gain in gains), sum(gain < -TIE for gain in gains)
    counts = f"{lost} lost, {len(gains) - won - lost} equal, {won} won"
    label = f"{comparison.label(variant_id)} against {comparison.label(comparison.run.baseline)}"
    figure, axes = look.new_figure(6.4, 2.9, f"Gain in {name} on each question, {label}: {counts}.")
    colours = [ABOVE if gain > TIE else BELOW if gain < -TIE else SAME for gain in gains]
    axes.bar(range(len(gains)), gains, color=colours, width=0.85)
    axes.plot(range(len(gains)), [0] * len(gains), color=MUTED, linewidth=1)
    row = comparison.difference(variant_id, name)
    if row is not None and number(row["difference"]) is not None:
        # The mean gain over the bars, with its interval as a band.
        sign = comparison.scales.get(name, SHARE).sign
        low, high = number(row["low"]), number(row["high"])
        if low is not None and high is not None:
            axes.axhspan(sign * low, sign * high, color=SHADE, linewidth=0, zorder=0)
        mean = sign * float(row["difference"])
        axes.axhline(mean, color=INK, linewidth=1, linestyle=look.DASHED)
        # Bars go down at the left and up at the right: the number stands where there are none.
        is_gain = mean >= 0
        axes.annotate(
            f"mean {mean:+.3f}",
            (0.0 if is_gain else 1.0, mean),
            (4, 3) if is_gain else (-4, -3),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            ha="left" if is_gain else "right",
            va="bottom" if is_gain else "top",
            color=INK,
            fontsize=FONT_SIZE,
        )
    axes.set_xticks([])
    axes.set_xlim(-1, max(len(gains), 1))
    axes.set_xlabel(f"{counted(len(gains), 'question')}: {counts}", loc="left")
    axes.set_ylabel(f"gain in {literal(name, 30)}")
    axes.set_title(literal(label), loc="left", fontsize=FONT_SIZE, color=INK)
    axes.grid(axis="y", color=look.GRID, linewidth=0.8)
    return figure
