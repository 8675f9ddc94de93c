"""The figure of a front: marks where the numbers are, hollow where resamples disagree, and the line of the front."""

import io
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from factories import effects
from matplotlib.colors import to_hex
from synthetic_run import certain, priced, uncertain

from rag_lab.comparison.comparison import Comparison
from rag_lab.report.effect_figures import forest_figure, front_figure, interaction_figure, paired_figure
from rag_lab.report.figures import ABOVE, BELOW, SAME, SHADE, to_svg

VALUES = {f"{a}{b}": {"query.hyde": a, "rerank.name": b} for a, b in product(["none", "always"], ["none", "$x$"])}


def table(value: float | None = None) -> pd.DataFrame:
    random = np.random.default_rng(0)
    rows = [
        {
            **{"variant_id": variant, "question_id": f"q{q}", "metric": "m", "reason": "", "status": "scored"},
            "value": random.random() if value is None else value,
        }
        for variant in VALUES
        for q in range(20)
    ]
    return effects(pd.DataFrame(rows), VALUES, "nonenone")


def test_the_forest_has_a_row_an_effect() -> None:
    axes = forest_figure(table(), "m").axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["query.hyde=always", r"rerank.name=\$x\$", r"query.hyde=always × rerank.name=\$x\$"]


def test_the_interaction_shows_every_level() -> None:
    axes = interaction_figure(table(), "m", "query.hyde", "rerank.name").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["none", r"\$x\$"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["always"]


@pytest.mark.parametrize("metric", ["m", "absent"])
def test_figures_can_be_drawn_of_anything(metric: str) -> None:
    for effects_table in (table(), table(0.5), table().iloc[:0]):
        for figure in (
            forest_figure(effects_table, metric),
            interaction_figure(effects_table, metric, "query.hyde", "rerank.name"),
        ):
            drawn = io.BytesIO()
            figure.savefig(drawn, format="svg")
            assert b"</svg>" in drawn.getvalue()


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


MAIN = "retrieval.ndcg@10"


def test_a_bar_for_each_question_and_the_mean_with_its_interval(wide: Comparison) -> None:
    variant = next(p.variant_id for p in wide.variants if wide.difference(p.variant_id, MAIN))
    told = wide.difference(variant, MAIN) or {}
    figure = paired_figure(wide, variant)
    axes = figure.axes[0]
    band, *bars = sorted(axes.patches, key=lambda patch: -patch.get_width())
    assert [bar.get_height() for bar in bars] == list(wide.paired(variant)["gain"])
    assert sum(to_hex(bar.get_facecolor()) == ABOVE for bar in bars) == told["wins"]
    assert sum(to_hex(bar.get_facecolor()) == BELOW for bar in bars) == told["losses"]
    assert [band.get_y(), band.get_y() + band.get_height()] == pytest.approx([told["low"], told["high"]])
    said = f"{told['losses']} lost, {told['ties']} equal, {told['wins']} won"
    assert said in axes.get_xlabel() and said in figure.alt
    assert f"mean {told['difference']:+.3f}" in [text.get_text() for text in axes.texts]
