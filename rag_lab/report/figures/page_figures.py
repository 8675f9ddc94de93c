"""The figures of a page as SVG elements, each with a text alternative."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from rag_lab._kit.wording import signed
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.statements import Verdict
from rag_lab.report.figures import effects_figure, run_figures
from rag_lab.report.figures.figure_style import to_svg

if TYPE_CHECKING:
    from rag_lab.report.figures.figure_style import ShownFigure


Titled = list[tuple[str, Markup]]
_INSET = 4.0  # percent that are left free on either side
_MOST_TICKS = 5


def quality_figures(comparison: Comparison) -> Titled:
    """Return a figure for each quality metric that has scores, with its name."""
    scored = set(comparison.summary[comparison.summary["scored"] > 0]["metric"])
    shown = [metric for metric in comparison.quality_metrics if metric in scored]
    return [(m, _svg(run_figures.quality_figure(comparison, m), f"quality{number}")) for number, m in enumerate(shown)]


def class_figures(comparison: Comparison) -> Titled:
    """Return the main metric by class; nothing where the dataset labels none."""
    main = comparison.main_metric
    if main is None or comparison.by_class.empty:
        return []
    return [("", _svg(run_figures.class_figure(comparison, main), "classes"))]


def front_figures(comparison: Comparison) -> Titled:
    """Return the main metric against each cost in which the variants differ."""
    costs = comparison.front.costs
    return [(cost, _svg(effects_figure.front_figure(comparison, cost), f"front-{cost}")) for cost in costs]


def evidence_figures(comparison: Comparison) -> Titled:
    """Return where the labelled pieces of evidence ended; nothing where none is labelled."""
    is_empty = comparison.evidence.items.empty
    return [] if is_empty else [("", _svg(run_figures.evidence_figure(comparison), "evidence"))]


def effect_figures(comparison: Comparison) -> Titled:
    """Return the effects on the main metric, and one figure for each pair of factors whose interaction was measured."""
    main, found = comparison.main_metric, comparison.effects
    if main is None or found.table.empty:
        return []
    forest = effects_figure.forest_figure(found.table, main)
    result = [(f"Effects on {comparison.directed(main)}", _svg(forest, "forest"))]
    both_ways = [way for pair in found.interactions(main) for way in (pair, pair[::-1])]
    for number, (factor, other) in enumerate(both_ways):
        figure = effects_figure.interaction_figure(found.table, main, factor, other)
        result.append((f"The effect of {factor} at each level of {other}", _svg(figure, f"interaction{number}")))
    return result


def _svg(figure: ShownFigure, prefix: str) -> Markup:
    return Markup(to_svg(figure, prefix))  # noqa: S704 -- matplotlib escapes


class EffectAxis:
    """An axis that holds zero and every interval of `rows`; from -1 to 1 where none has an effect."""

    def __init__(self, rows: Sequence[Verdict]) -> None:
        ends = [value for row in rows for value in (row.effect, row.low, row.high) if value is not None]
        low, high = min([0.0, *ends]), max([0.0, *ends])
        self._low, self._high = (low, high) if high > low else (-1.0, 1.0)
        rough = (self._high - self._low) / _MOST_TICKS
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough)
        # Round numbers within the axis, zero among them.
        self._ticks = [step * k for k in range(math.ceil(self._low / step), math.floor(self._high / step) + 1)]

    def head(self) -> Markup:
        """Return the numbers above the column."""
        texts = "".join(
            f'<text x="{self._place(tick)}" y="1em" text-anchor="middle">{signed(tick) if tick else 0}</text>'
            for tick in self._ticks
        )
        return _drawn("ticks", texts)

    def drawing(self, row: Verdict | None = None) -> Markup:
        """Return the zero line, and on it the interval of a row, of which the numbers stand beside it."""
        parts = []
        for tick in self._ticks:
            x, kind = self._place(tick), "zero" if tick == 0 else "grid"
            parts.append(f'<line class="{kind}" x1="{x}" x2="{x}" y1="0" y2="100%"/>')
        if row is not None and row.low is not None and row.high is not None:
            ends = f'x1="{self._place(row.low)}" x2="{self._place(row.high)}"'
            parts.append(f'<line class="reach" {ends} y1="50%" y2="50%"/>')
        if row is not None and row.effect is not None:
            parts.append(f'<circle cx="{self._place(row.effect)}" cy="50%" r="4.5"/>')
        return _drawn(row.word.replace(" ", "-") if row is not None else "none", "".join(parts))

    def _place(self, value: float) -> str:
        share = (value - self._low) / (self._high - self._low)
        return f"{_INSET + share * (100 - 2 * _INSET):.2f}%"


def _drawn(name: str, inner: str) -> Markup:
    return Markup(f'<svg class="effect {name}" aria-hidden="true" focusable="false">{inner}</svg>')  # noqa: S704 -- numbers
