"""The figures of a report by matplotlib, in a notebook and as SVG that follows the page's colours and font.

Colours are of Okabe and Ito's palette, which colour-blind readers can tell apart, and no meaning rests on colour alone.
pyplot is not used, so no global state changes.
"""

import io
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rag_lab._kit.wording import number
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.trace_findings import state_names
from rag_lab.comparison.tables.evidence import State
from rag_lab.evaluation.retrieval import covers
from rag_lab.records import Hit, Question
from rag_lab.statistics.summaries import SHARE

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


def new_figure(width_inches: float, height_inches: float, alt: str) -> "tuple[ShownFigure, Axes]":
    """Return a figure with one plain pair of axes, without touching pyplot's state.

    `alt` is the text alternative for people who do not see the figure.
    """
    figure = ShownFigure(width_inches, height_inches, alt)
    axes = figure.add_subplot(facecolor="none")
    # The look of every figure: thin lines at the left and below, nothing else.
    axes.tick_params(colors=INK, labelsize=FONT_SIZE, length=0, which="both")
    axes.spines[:].set_color(GRID)
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.label.set(color=INK, fontsize=FONT_SIZE)
    axes.yaxis.label.set(color=INK, fontsize=FONT_SIZE)
    axes.set_axisbelow(True)
    return figure, axes


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


def to_svg(figure: "ShownFigure", prefix: str) -> Markup:
    """Return `figure` as an SVG element for a page: text as text, colours as CSS variables, ids begin with `prefix`."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    out, canvas = io.StringIO(), cast(Any, FigureCanvasSVG(figure))  # matplotlib gives its writers no types
    figure.set_facecolor("none")
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)  # once: `savefig` draws the whole figure for it, and throws that away
        figure.set_layout_engine("none")
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": prefix}):
        canvas.print_svg(out, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
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
    return Markup(re.sub(r"\n\s*", "\n", svg.replace("<svg", head, 1)))  # noqa: S704 -- matplotlib escapes


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


_LEAST_TINTED = 10  # questions of a class
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
    figure, axes = new_figure(4.6, 0.62 + 0.3 * max(len(means), 2), alt)
    baseline = comparison.run.baseline
    if baseline in means:
        low, high = number(means[baseline]["low"]), number(means[baseline]["high"])
        if low is not None and high is not None:
            axes.axvspan(low, high, color=SHADE, linewidth=0, zorder=0)
        axes.axvline(float(means[baseline]["mean"]), color=MUTED, linewidth=1, linestyle=DASHED, zorder=1)
    for row, (name, cell) in enumerate(means.items()):
        # Reliably better or worse than the baseline, or neither.
        colour, marker = {1: (ABOVE, "^"), -1: (BELOW, "v"), 0: (SAME, "o")}[comparison.reliable(name, metric)]
        if name == baseline:
            colour, marker = INK, "D"
        draw_interval(axes, cell, row, colour)
        mean = float(cell["mean"])
        axes.plot([mean], [row], marker=marker, color=colour, markersize=7, linestyle="none", zorder=3)
    axes.set_yticks(range(len(means)), [variant_name(comparison, name) for name in means])
    axes.set_ylim(max(len(means), 1) - 0.5, -0.5)
    axes.set_xlabel(literal(comparison.directed(metric)), loc="right")
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    return figure


def class_figure(comparison: Comparison, metric: str) -> ShownFigure:
    """Tabulate the mean of `metric` by variant and labelled query class, tinted by what is better than the baseline."""
    from matplotlib.patches import Rectangle

    table = comparison.by_class[comparison.by_class["metric"] == metric]
    plans = [plan for plan in comparison.variants if plan.variant_id in set(table["variant_id"])]
    means = {(r.variant_id, r.query_class): number(r.mean) for r in table.itertuples()}
    scored = table.groupby("query_class", sort=False)["scored"]  # how many questions, by class; variants may differ
    counts = {str(name): (int(of_class.min()), int(of_class.max())) for name, of_class in scored}
    sign = comparison.scales.get(metric, SHARE).sign
    alt = f"Mean of {metric} by variant and query class; the numbers stand in its tiles."
    figure, axes = new_figure(1.4 + 1.0 * max(len(counts), 1) + 1.2, 0.75 + 0.32 * max(len(plans), 1), alt)
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
    figure, axes = new_figure(7.6, 0.95 + 0.32 * max(len(rows), 2), alt)
    most = max((row["items"] for row in rows), default=1)
    for place, row in enumerate(rows):
        left = 0
        for state, name in names.items():
            count, (colour, strength) = row[state], _FILLS[state]
            axes.barh(place, count, 0.78, left, color=colour, alpha=strength, linewidth=0)
            axes.plot([left, left], [place - 0.39, place + 0.39], color=GRID, linewidth=0.8)
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


def rank_figure(lists: Mapping[str, Sequence[Hit]], question: Question, first: int = 10) -> ShownFigure:
    """Plot where each hit stands in each list, the hits that hold evidence in colour.

    A hit that is not among the first of a list is drawn below its last line.

    `lists` are rankings of the same parents by name, in the order in which they are drawn, of each the `first` hits;
    the evidence of `question` is located, as a trace has it.
    """
    shown = {name: list(hits[:first]) for name, hits in lists.items()}
    hits = {hit.parent_id: hit for found in shown.values() for hit in found}
    evidence = {parent for parent, hit in hits.items() if any(covers(hit, one) for one in question.evidence)}
    ranks = [{hit.parent_id: rank for rank, hit in enumerate(found, 1)} for found in shown.values()]
    texts = []
    for name, one in zip(shown, ranks, strict=True):
        found = sorted(rank for parent, rank in one.items() if parent in evidence)
        texts.append(f"{name}: " + (f"at {', '.join(map(str, found))}" if found else "nowhere"))
    lowest = max((len(one) for one in ranks), default=1)
    alt = f"Ranks of what was found for {question.text!r}. Evidence stands, in {'; '.join(texts)}."
    figure, axes = new_figure(3.8 + 1.2 * len(shown), 0.6 + 0.26 * (lowest + 1), alt)
    for parent in sorted(hits, key=lambda parent: parent in evidence):
        is_evidence, found_at = parent in evidence, [one.get(parent, lowest + 1) for one in ranks]
        line: dict[str, Any] = {"color": SAME, "lw": 0.8}
        dot: dict[str, Any] = {"marker": "o", "markersize": 5, "color": MUTED}
        if is_evidence:
            line = {"color": ABOVE, "linewidth": 2.4, "zorder": 3}
            dot = {"marker": "D", "markersize": 8, "color": ABOVE}
        for column, (here, there) in enumerate(pairwise(found_at)):  # of what is no evidence, where both lists have it
            if is_evidence or max(here, there) <= lowest:
                axes.plot([column, column + 1], [here, there], **line)
        for column, rank in enumerate(found_at):
            if is_evidence or rank <= lowest:
                axes.plot([column], [rank], zorder=4, **dot)
    # Beside the first and the last list: rank and place of each hit.
    for column, side in ((0, "right"), (len(ranks) - 1, "left")) if ranks else ():
        for parent, rank in ranks[column].items():
            source, page = hits[parent].source, hits[parent].page
            name = literal(source.rsplit("/", 1)[-1] + ("" if page is None else f", p. {page}"), LABEL_CHARS)
            text, offset = (f"{name}  {rank}", -9) if side == "right" else (f"{rank}  {name}", 9)
            style: dict[str, Any] = {"color": ABOVE, "fontweight": "bold"} if parent in evidence else {"color": INK}
            style |= {"ha": side, "va": "center", "fontsize": FONT_SIZE}
            axes.annotate(text, (column, rank), (offset, 0), textcoords="offset points", **style)
    axes.set_xticks(range(len(shown)), [literal(name, 24) for name in shown])
    axes.xaxis.tick_top()
    axes.set_yticks([lowest + 1], [f"not in\nthe first {lowest}"], color=MUTED)
    axes.set_ylim(lowest + 1.4, 0.5)
    axes.spines[:].set_visible(False)
    return figure
