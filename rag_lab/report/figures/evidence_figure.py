"""The figure of the evidence waterfall: a bar a variant, from what no index holds to what its answer uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.evidence.fate import State
from rag_lab.comparison.evidence.state_names import state_names
from rag_lab.report.figures.figure_style import (
    ABOVE,
    BELOW,
    FONT_SIZE,
    GRID,
    INK,
    MUTED,
    SAME,
    SHADE,
    new_figure,
    variant_name,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rag_lab.report.figures.figure_style import ShownFigure

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
