"""The figure of a pair of variants: what one of them won and lost on every question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_lab._kit.numbers import number
from rag_lab._kit.wording import counted
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
)
from rag_lab.statistics.intervals import TIE
from rag_lab.statistics.scales import SHARE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rag_lab.comparison.comparison import Comparison
    from rag_lab.report.figures.figure_style import ShownFigure


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
