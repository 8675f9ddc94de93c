"""The figure of a front: marks where the numbers are, hollow where resamples disagree, and the line of the front."""

import re

import numpy as np
import pytest
from matplotlib.colors import to_hex
from priced_run import certain, priced, uncertain

from rag_lab.report.figures.figure_style import ABOVE, SAME, SHADE, to_svg
from rag_lab.report.figures.front_figure import front_figure


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return certain(tmp_path_factory.mktemp("certain") / "run")


def marks(figure):
    """Of each mark: where it stands, its colour, and that of its inside."""
    found = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    return [
        (line.get_xdata()[0], line.get_ydata()[0], to_hex(line.get_color()), to_hex(line.get_markerfacecolor()))
        for line in found
    ]


def test_each_variant_stands_at_its_cost_and_quality(planted):
    for cost, amounts in {"seconds": [0.1, 1, 2], "tokens": [100, 1000, 2000], "usd": [0, 1, 2]}.items():
        found = marks(front_figure(planted, cost))
        assert [x for x, *_ in found] == pytest.approx(amounts)
        assert [y for _, y, *_ in found] == [planted.front.quality[name].mean for name in "abc"]
        assert [colours for *_, colours, _ in found] == [ABOVE, ABOVE, SAME]
        assert all(edge == inside for *_, edge, inside in found)


def test_the_line_of_the_front_goes_through_its_variants(planted):
    axes = front_figure(planted, "tokens").axes[0]
    (line,) = [line for line in axes.lines if line.get_drawstyle() == "steps-post"]
    good = [planted.front.quality[name].mean for name in "ab"]
    assert list(line.get_ydata()) == [*good, good[-1]] and list(line.get_xdata())[:2] == [100, 1000]


def test_who_leaves_or_joins_by_chance_is_hollow_and_says_how_often(tmp_path):
    found = uncertain(tmp_path / "run")
    figure = front_figure(found)
    assert [inside for *_, inside in marks(figure)] == [SHADE, ABOVE, SAME]
    words = [text.get_text() for text in figure.axes[0].texts]
    assert re.fullmatch(r"A 3\d%", words[0]) and words[1:] == ["B", "C"]


def test_the_axis_is_logarithmic_where_costs_span_tenfold(planted):
    assert front_figure(planted).axes[0].get_xscale() == "log"
    assert front_figure(planted, "usd").axes[0].get_xscale() == "linear"  # one costs nothing


def test_a_cost_that_does_not_differ_is_drawn_empty(tmp_path):
    base = np.linspace(0, 1, 20)
    found = priced(tmp_path / "run", {"a": base, "b": base}, {"a": 0.1, "b": 0.1})
    assert (
        marks(front_figure(found)) == [] and front_figure(found).axes[0].get_xlabel() == "seconds per question (median)"
    )


def test_svg_names_no_address_and_has_ids_of_its_own(planted):
    svg = to_svg(front_figure(planted), "front-seconds")
    assert "http" not in svg and all(name.startswith("front-") for name in re.findall(r'\bid="([^"]+)"', svg))
