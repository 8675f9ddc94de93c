"""The figures of a page as SVG elements, each with a text alternative."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from rag_lab.report import effects_figure, figures
from rag_lab.report.comparison import Comparison
from rag_lab.report.figure_style import to_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Titled = list[tuple[str, Markup]]


def quality_figures(comparison: Comparison) -> Titled:
    """Return a figure for each quality metric that has scores, with its name."""
    result = []
    scored = set(comparison.summary[comparison.summary["scored"] > 0]["metric"])
    for number, metric in enumerate(metric for metric in comparison.quality_metrics if metric in scored):
        title = f"Mean and 95% interval of {metric} for each variant; the numbers stand in the table of scores."
        result.append((metric, _svg(figures.quality_figure(comparison, metric), f"quality{number}", title)))
    return result


def class_figure(comparison: Comparison) -> Markup | None:
    """Return the main metric by class, or None where the dataset labels none."""
    main = comparison.main_metric
    if main is None or comparison.by_class.empty:
        return None
    title = f"Mean of {main} by variant and query class; the numbers stand in the table below."
    return _svg(figures.class_figure(comparison, main), "classes", title)


def latency_figure(comparison: Comparison) -> Markup | None:
    """Return the main metric against seconds, or None without traces."""
    main = comparison.main_metric
    if main is None or comparison.latency.empty:
        return None
    title = f"Mean of {main} against median seconds per question, one mark for each variant."
    return _svg(figures.latency_figure(comparison, main), "latency", title)


def effect_figures(comparison: Comparison) -> Titled:
    """Return the effects on the main metric, and one figure for each pair of factors whose interaction was measured."""
    main, found = comparison.main_metric, comparison.effects
    if main is None or found.table.empty:
        return []
    title = f"Effect of each module on {main} with its 95% interval; the sentences beside say the same."
    result = [
        (
            f"Effects on {comparison.directed(main)}",
            _svg(effects_figure.forest_figure(found.table, main), "forest", title),
        )
    ]
    both_ways = [way for pair in found.interactions(main) for way in (pair, pair[::-1])]
    for number, (factor, other) in enumerate(both_ways):
        figure = effects_figure.interaction_figure(found.table, main, factor, other)
        said = f"The effect of {factor} at each level of {other}"
        result.append((said, _svg(figure, f"interaction{number}", f"{said}, on {main}, with 95% intervals.")))
    return result


def _svg(figure: Figure, prefix: str, title: str) -> Markup:
    return Markup(to_svg(figure, prefix, title))  # noqa: S704 -- matplotlib escapes
