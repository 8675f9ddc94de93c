"""Figures show their numbers: bars as long as counts, marks by verdict, text as text."""

import io
import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from factories import effects
from matplotlib.colors import to_hex
from synthetic_run import certain, priced, uncertain

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.tables.evidence import STATES
from rag_lab.records import Evidence, Hit, Question
from rag_lab.report.effect_figures import forest_figure, front_figure, interaction_figure, paired_figure
from rag_lab.report.figures import (
    ABOVE,
    BELOW,
    SAME,
    SHADE,
    class_figure,
    evidence_figure,
    quality_figure,
    rank_figure,
    to_svg,
)
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
    every.__dict__["evidence"] = replace(found, items=found.items.assign(state=states))
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
