"""The box on top: a line each for what to use, to leave out, what cannot be told and what to do next."""

from pathlib import Path

from run_folder_fixture import build_unlabelled

from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.statements import module_rows
from rag_lab.report.page.report_page import overview_html, to_html
from rag_lab.report.sections import verdict_box
from rag_lab.report.shown_comparison import compare


def test_every_row_of_the_table_is_in_one_line_or_in_the_headline(wide: Comparison) -> None:
    lines = dict(verdict_box(wide).lines)
    assert list(lines) == ["Verdict", "Cannot tell", "Without scores", "Answers", "Do next"]
    for row in module_rows(wide):
        line = {"cannot tell": "Cannot tell", "failed": "Without scores", "worse": "Leave out"}.get(row.word)
        assert line is None or wide.called(row.variant_id) in lines[line][0]
    assert lines["Do next"][0].startswith("A margin, the largest loss")


def test_what_is_used_has_its_price_and_what_is_said_in_the_box_is_not_said_again(grid: Comparison) -> None:
    box = verdict_box(grid)
    lines = dict(box.lines)
    assert lines["Use"][0].startswith("D (always-query_likelihood): it raises")
    assert lines["Price"] == ("0.10 s a question; with A (none-none) 0.10 s.",)
    page = to_html(grid)
    for sentence in (lines["Use"][0], *box.details[:1]):
        assert page.count(sentence[:40]) == 1


def test_without_labels_it_says_what_to_do_next_beside_a_picture_of_what_changed(tmp_path: Path) -> None:
    found = compare(build_unlabelled(tmp_path / "run").path)
    lines = dict(verdict_box(found).lines)
    assert lines["Undecided"][0].startswith("No question has a label")
    assert any("rag-lab ask QUESTION" in sentence for sentence in lines["Do next"])
    for page in (to_html(found), overview_html(found)):
        assert page.index("Do next") < page.index('class="bar" style="--w:67%"') < page.index("The questions that")


def test_caveats_are_chips_and_only_where_there_are_some(wide: Comparison, grid: Comparison) -> None:
    assert [title for title, _ in verdict_box(wide).chips] == ["Clusters of questions"]
    assert verdict_box(grid).chips == () and 'class="chip"' not in to_html(grid)
