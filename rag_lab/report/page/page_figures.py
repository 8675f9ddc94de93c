"""The figures of a page as SVG elements, each with a text alternative."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from rag_lab.comparison.comparison import Comparison
from rag_lab.report.figures import effects_figure
from rag_lab.report.figures import run_figures as figures
from rag_lab.report.figures.evidence_figure import evidence_figure as figure_of_evidence
from rag_lab.report.figures.figure_style import to_svg
from rag_lab.report.figures.front_figure import front_figure

if TYPE_CHECKING:
    from rag_lab.report.figures.figure_style import ShownFigure

Titled = list[tuple[str, Markup]]


def quality_figures(comparison: Comparison) -> Titled:
    """Return a figure for each quality metric that has scores, with its name."""
    scored = set(comparison.summary[comparison.summary["scored"] > 0]["metric"])
    shown = [metric for metric in comparison.quality_metrics if metric in scored]
    return [(m, _svg(figures.quality_figure(comparison, m), f"quality{number}")) for number, m in enumerate(shown)]


def class_figure(comparison: Comparison) -> Markup | None:
    """Return the main metric by class, or None where the dataset labels none."""
    main = comparison.main_metric
    if main is None or comparison.by_class.empty:
        return None
    return _svg(figures.class_figure(comparison, main), "classes")


def front_figures(comparison: Comparison) -> list[Markup]:
    """Return the main metric against each cost in which the variants differ."""
    return [_svg(front_figure(comparison, cost), f"front-{cost}") for cost in comparison.front.costs]


def evidence_figure(comparison: Comparison) -> Markup | None:
    """Return where the labelled pieces of evidence ended, or None where none is labelled."""
    if comparison.evidence.is_empty:
        return None
    return _svg(figure_of_evidence(comparison), "evidence")


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
