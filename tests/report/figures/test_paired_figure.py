from __future__ import annotations

import pytest
from matplotlib.colors import to_hex

from rag_lab.comparison.comparison import Comparison
from rag_lab.report.figures.figure_style import ABOVE, BELOW
from rag_lab.report.figures.paired_figure import paired_figure

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
