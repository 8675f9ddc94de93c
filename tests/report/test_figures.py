"""The figure of the evidence waterfall: each bar is as long as its counts, and says them."""

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.tables.evidence import STATES
from rag_lab.records import Evidence, Hit, Question
from rag_lab.report.figures import ABOVE, class_figure, evidence_figure, quality_figure, rank_figure, to_svg
from rag_lab.report.shown_comparison import compare
from rag_lab.runs.run_folder import VariantPlan

MAIN = "retrieval.ndcg@10"


def _words(svg: str) -> str:
    return " ".join(ElementTree.fromstring(svg).itertext())


def test_quality_figure_draws_the_means_of_the_table(wide: Comparison) -> None:
    axes = quality_figure(wide, MAIN).axes[0]
    dots = [line.get_xdata()[0] for line in axes.lines if line.get_marker() in ("D", "o", "^", "v")]
    cells = [wide.cell(plan.variant_id, MAIN) for plan in wide.variants]
    assert dots == [cell["mean"] for cell in cells if cell]
    assert axes.get_xlabel() == MAIN


def test_reliable_differences_have_a_shape_of_their_own(wide: Comparison) -> None:
    markers = [line.get_marker() for line in quality_figure(wide, MAIN).axes[0].lines]
    reliable = sum(wide.reliable(plan.variant_id, MAIN) != 0 for plan in wide.variants)
    assert reliable > 0
    assert markers.count("^") + markers.count("v") == reliable


def test_class_figure_tells_how_many_questions_a_class_has(wide: Comparison) -> None:
    labels = [label.get_text() for label in class_figure(wide, MAIN).axes[0].get_xticklabels()]
    rows = wide.by_class[(wide.by_class["metric"] == MAIN) & (wide.by_class["variant_id"] == "baseline")]
    assert labels == [f"{row.query_class}\nn = {row.scored}" for row in rows.itertuples()]


def test_a_class_of_few_questions_has_no_tint(tmp_path: Path, synthetic: ModuleType) -> None:
    def strongest(n: int) -> float:
        values = {name: np.full(n, value) for name, value in (("base", 0.2), ("other", 0.9))}
        plans = {"base": {}, "other": {"rerank.final_k": 7}}
        run = synthetic.write_run(tmp_path / str(n), plans, {MAIN: values}, labelled=["fuzzy"] * n)
        return max(patch.get_alpha() for patch in class_figure(compare(run.path), MAIN).axes[0].patches)

    assert strongest(9) == 0 < strongest(10)


@pytest.mark.parametrize("draw", [quality_figure, class_figure])
def test_svg_is_well_formed_and_names_no_address(wide: Comparison, draw: object) -> None:
    svg = to_svg(draw(wide, MAIN), "fig")  # type: ignore[operator]
    words = _words(svg)
    assert "A" in words
    assert "http" not in svg
    assert all(name.startswith("fig-") for name in re.findall(r'\bid="([^"]+)"', svg))


def test_drawing_leaves_matplotlib_as_it_was(wide: Comparison) -> None:
    before = dict(mpl.rcParams)
    to_svg(quality_figure(wide, MAIN), "fig")
    assert dict(mpl.rcParams) == before


def test_labels_are_no_formulas_and_no_markup(wide: Comparison) -> None:
    plans = (*wide.run.variants[:-1], VariantPlan(wide.run.variants[-1].variant_id, "<b>$x_1$ & $5", {}))
    odd = replace(wide, run=replace(wide.run, variants=plans))
    assert "<b>$x_1$ & $5" in _words(to_svg(quality_figure(odd, MAIN), "fig"))


def test_the_text_alternative_is_no_markup(wide: Comparison) -> None:
    svg = to_svg(quality_figure(wide, 'a "metric" <b>'), "fig")
    assert 'of a "metric" <b> for each variant' in ElementTree.fromstring(svg).attrib["aria-label"]


def test_a_figure_is_a_picture_in_a_file_and_a_sentence_in_a_terminal(wide: Comparison, tmp_path: Path) -> None:
    figure = quality_figure(wide, MAIN)
    for name, begins in {"f.png": b"\x89PNG", "f.pdf": b"%PDF", "f.svg": b"<?xml"}.items():
        figure.savefig(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)
    assert repr(figure).startswith("Mean and 95% interval of") and "savefig" in repr(figure)


def bars(figure):
    """Of each bar: its variant's place, where it begins, and how long it is; bars of nothing left out."""
    found = [
        (patch.get_y() + patch.get_height() / 2, patch.get_x(), patch.get_width()) for patch in figure.axes[0].patches
    ]
    return [(round(place), round(left), round(width)) for place, left, width in found if width]


def test_the_bars_of_a_variant_follow_each_other_and_add_up_to_its_pieces(wide):
    counts = wide.evidence.by_variant
    drawn = bars(evidence_figure(wide))
    for place, row in enumerate(counts.to_dict("records")):
        widths = [row[state] for state in STATES if row[state]]
        ours = [(left, width) for at, left, width in drawn if at == place]
        assert [width for _, width in ours] == widths
        assert [left for left, _ in ours] == [sum(widths[:n]) for n in range(len(widths))]


def test_a_bar_with_room_says_its_state_and_every_state_is_named_above(wide):
    figure = evidence_figure(wide)
    texts = {text.get_text() for text in figure.axes[0].texts}
    row = wide.evidence.by_variant.to_dict("records")[0]
    assert f"used {row['used']}" in texts
    named = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert len(named) == len(wide.evidence.states) and named[-1] == "used"
    assert figure.alt.startswith("Where each labelled piece of evidence ended")


def test_every_state_has_a_look_and_follows_the_colours_of_the_page(wide):
    found = wide.evidence
    every = replace(wide)
    states = [STATES[number % len(STATES)] for number in range(len(found.items))]
    every.__dict__["evidence"] = replace(found, items=found.items.assign(state=states), unrecorded=())
    svg = to_svg(evidence_figure(every), "evidence")
    assert "not indexed" in svg and "lost in selection" in svg
    assert not any(colour in svg for colour in ("#1f2a33", "#d55e00", "#0072b2", "#6b7782"))


@pytest.mark.parametrize("count", [0, 1])
def test_a_run_with_one_piece_or_a_name_with_dollars_is_drawn(wide, count):
    found = wide.evidence
    one = replace(wide)
    one.__dict__["evidence"] = replace(found, items=found.items[:count])
    assert len(bars(evidence_figure(one))) == count


ASKED = Question("q", "What costs $5?", evidence=(Evidence("manuals/b$.pdf", 2),))


def hit(name: str) -> Hit:
    return Hit(name, name, f"manuals/{name}", 2, 0, 10, 1.0)


def test_the_evidence_is_followed_through_all_lists() -> None:
    lists = {"dense": [hit("a.pdf"), hit("c.pdf")], "bm25": [hit("b$.pdf"), hit("a.pdf"), hit("d.pdf")]}
    figure = rank_figure(lists, ASKED, first=2)
    axes = figure.axes[0]
    followed = [line for line in axes.lines if line.get_color() == ABOVE]
    assert [list(line.get_ydata()) for line in followed] == [[3, 1], [3], [1]]  # below the two of the first list
    assert "dense: nowhere; bm25: at 1" in figure.alt
    texts = [text.get_text() for text in axes.texts]
    assert r"1  b\$.pdf, p. 2" in texts and "a.pdf, p. 2  1" in texts
    assert not any("d.pdf" in text for text in texts)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["dense", "bm25"]


def test_lists_without_hits_are_drawn_too() -> None:
    assert "dense: nowhere" in rank_figure({"dense": []}, ASKED).alt
    assert rank_figure({"dense": [], "bm25": [hit("b$.pdf")]}, ASKED)._repr_png_()[0].startswith(b"\x89PNG")
