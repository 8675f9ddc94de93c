"""How figures look: in a notebook, and as SVG that follows the page's colours and font."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from rag_lab._kit.wording import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rag_lab.comparison.comparison import Comparison

PIXELS_PER_POINT = 2  # sharp on screens of twice the density

INK, MUTED, GRID, SHADE = "#1f2a33", "#6b7782", "#dfe4e8", "#eef1f4"
ABOVE, BELOW, SAME = "#0072b2", "#d55e00", "#7a8791"
# In a page each of these is a CSS variable, so that figures follow a dark colour scheme.
CSS_NAMES = {INK: "--ink", MUTED: "--muted", GRID: "--line", SHADE: "--shade", ABOVE: "--above", BELOW: "--below"}
CSS_NAMES |= {SAME: "--same"}
FONT_SIZE = 9
DASHED = (0, (4, 3))  # a line, as matplotlib names it
LABEL_GAP_POINTS = 11.0
LABEL_CHARS = 30  # of the name of a variant, or a passage, beside its row


def new_figure(width_inches: float, height_inches: float, alt: str) -> tuple[ShownFigure, Axes]:
    """Return a figure with one plain pair of axes, without touching pyplot's state.

    `alt` is the text alternative for people who do not see the figure.
    """
    figure = ShownFigure(width_inches, height_inches, alt)
    axes = figure.add_subplot(facecolor="none")
    dress(axes)
    return figure, axes


def dress(axes: Axes) -> None:
    """Give `axes` the look of every figure: thin lines at the left and below, nothing else."""
    axes.tick_params(colors=INK, labelsize=FONT_SIZE, length=0, which="both")
    axes.spines[:].set_color(GRID)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.label.set(color=INK, fontsize=FONT_SIZE)
    axes.yaxis.label.set(color=INK, fontsize=FONT_SIZE)
    axes.set_axisbelow(True)


def draw_interval(axes: Axes, row: Mapping[Any, Any], place: float, colour: str, upright: bool = False) -> None:
    """Draw from `low` to `high` of a row, where it has both, at a place of the other axis."""
    low, high = number(row["low"]), number(row["high"])
    if low is not None and high is not None:
        ends, places = [low, high], [place, place]
        xs, ys = (places, ends) if upright else (ends, places)
        axes.plot(xs, ys, color=colour, linewidth=2, solid_capstyle="butt", zorder=2)


def literal(text: str, chars: int = 80) -> str:
    """Return `text`, at most `chars` characters, so that matplotlib writes it as it is (dollars begin no formula)."""
    short = text if len(text) <= chars else text[: chars - 1].rstrip() + "…"
    return short.replace("$", r"\$")


def variant_name(comparison: Comparison, variant: str) -> str:
    """Return label and letter of a variant, as they stand beside its row."""
    return f"{literal(comparison.label(variant), LABEL_CHARS)}\u2002{comparison.codes[variant]}"


def spread_labels(axes: Axes, points: Sequence[tuple[str, float, float]]) -> None:
    """Write each (text, x, y) right of its point, with a thin line; labels of neighbours are pushed distance."""
    axes.figure.canvas.draw()
    spots = [axes.transData.transform((x, y)) * 72 / axes.figure.dpi for _, x, y in points]
    heights = [float(spot[1]) + index * 1e-3 for index, spot in enumerate(spots)]  # in points, as the spots
    for _ in range(100):
        for i in range(len(spots)):
            for j in range(i):
                gap, distance = heights[i] - heights[j], abs(float(spots[i][0]) - float(spots[j][0]))
                if distance < 2 * LABEL_GAP_POINTS and abs(gap) < LABEL_GAP_POINTS:
                    push = (LABEL_GAP_POINTS - abs(gap)) / 2 * (1 if gap > 0 else -1)
                    heights[i] += push
                    heights[j] -= push
    line = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 4}
    for (text, x, y), spot, height in zip(points, spots, heights, strict=True):
        offset = (16, height - float(spot[1]))
        style: dict[str, Any] = {"va": "center", "color": INK, "fontsize": FONT_SIZE, "arrowprops": line}
        axes.annotate(text, (x, y), offset, textcoords="offset points", **style)


def to_svg(figure: ShownFigure, prefix: str) -> str:
    """Return `figure` as an SVG element for a page: text as text, colours as CSS variables, ids begin with `prefix`."""
    import matplotlib as mpl
    from markupsafe import escape

    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": prefix}):
        figure.savefig(
            out, format="svg", facecolor="none", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\sxmlns(:xlink)?="[^"]*"', "", svg).replace("xlink:href=", "href=")
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
    for colour, name in CSS_NAMES.items():
        svg = svg.replace(colour, f"var({name})")
    head = f'<svg role="img" aria-label="{escape(figure.alt)}" class="figure"'
    return re.sub(r"\n\s*", "\n", svg.replace("<svg", head, 1))


class ShownFigure(Figure):
    """A matplotlib figure with a text alternative, which a notebook shows as a picture."""

    def __init__(self, width_inches: float, height_inches: float, alt: str) -> None:
        # White also where the notebook is dark, because the labels are drawn in ink.
        super().__init__(figsize=(width_inches, height_inches), layout="constrained", facecolor="white")
        self.alt = alt

    def __repr__(self) -> str:
        """Return what it shows, and how to get it where pictures are not shown, as in a terminal."""
        return f"{self.alt} A figure: savefig('figure.png') writes it."

    def _repr_png_(self) -> tuple[bytes, dict[str, int | str]]:
        """Return the picture, and how wide and high it is shown, with the text alternative."""
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=self.dpi * PIXELS_PER_POINT)
        width, height = self.get_size_inches() * self.dpi
        return out.getvalue(), {"width": round(width), "height": round(height), "alt": self.alt}
