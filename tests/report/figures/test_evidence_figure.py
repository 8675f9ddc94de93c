"""The figure of the evidence waterfall: each bar is as long as its counts, and says them."""

from dataclasses import replace

import pytest

from rag_lab.comparison.evidence.fate import STATES
from rag_lab.report.figures.evidence_figure import evidence_figure
from rag_lab.report.figures.figure_style import to_svg


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
