"""A person judges blind, in Python as in the browser, and goes on where they were."""

from pathlib import Path

import pytest
from run_folder_fixture import HOSTILE, build_unlabelled

import rag_lab
from rag_lab.errors import ConfigError
from rag_lab.runs.run_folder import RunFolder

LIKELY = "rerank.name-query_likelihood"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return build_unlabelled(tmp_path / "run", 30, 4)


def test_choices_are_kept_and_it_goes_on_where_it_was_left(run: RunFolder) -> None:
    first = rag_lab.prefer(run.path, "B", questions=5)
    seen = first.now
    assert seen is not None
    first.choose("left")
    first.choose("same")
    again = rag_lab.prefer(run.path, "B", questions=5)
    assert (again.done, len(again.trials)) == (2, 5)
    assert again.now is not None and again.now != seen
    again.undo()
    again.undo()
    assert again.now == seen == first.now
    with pytest.raises(ConfigError, match="no choice to undo"):
        again.undo()


def test_no_name_is_shown_before_the_end(run: RunFolder) -> None:
    asked = rag_lab.prefer(run.path, "B", questions=3)
    while asked.now:
        page = asked.to_html()
        assert not any(name in page for name in ("baseline", LIKELY, "query_likelihood", "is reliably"))
        asked.choose("right")
    assert "query_likelihood" in asked.to_html() and asked.result.difference.n == 3
    with pytest.raises(ConfigError, match="Everything is judged"):
        asked.choose("left")


def test_clicks_do_what_choose_does(run: RunFolder) -> None:
    asked = rag_lab.prefer(run.path, "B", questions=3)
    page = asked.widget
    assert 'data-do="choose" data-value="left" data-key="ArrowLeft"' in page.html and "0 of 3 judged" in page.html
    page.do({"do": "choose", "value": "right"})
    assert asked.done == 1 and "1 of 3 judged" in page.html
    page.do({"do": "undo"})
    assert asked.done == 0 and "was taken back" in page.html
    page.do({"do": "choose", "value": "<b>"})
    assert asked.done == 0 and "&lt;b&gt;" in page.html and 'class="said bad"' in page.html
    page.do({"do": "choose", "value": "skip"})
    page.do({"do": "end"})
    assert "query_likelihood" in page.html
    page.do({"do": "go on"})
    assert "query_likelihood" not in page.html


def test_a_notebook_without_a_kernel_keeps_a_page_without_buttons(run: RunFolder) -> None:
    asked = rag_lab.prefer(run.path, "B")
    page = asked.widget.still().data
    assert f'class="rl-kept" data-kept="{asked.widget.kept}"' in page and "Run the cell to judge" in page
    assert "0 of 20 judged" in page and "<button" not in page and "of 20 judged" in repr(asked)


def test_texts_from_outside_are_escaped(run: RunFolder) -> None:
    asked = rag_lab.prefer(run.path, "B", questions=30)
    while asked.now and asked.now.question.text != HOSTILE:
        asked.choose("skip")
    assert asked.now is not None
    assert "<script>alert" not in asked.to_html() and "&lt;script&gt;alert" in asked.to_html()


def test_a_variant_is_named_by_letter_label_or_id_and_a_pair_by_two(run: RunFolder) -> None:
    for name in ("B", LIKELY, "rerank.name=query_likelihood"):
        assert {rag_lab.prefer(run.path, name).result.variant_id} == {LIKELY}
    pair = rag_lab.prefer(run.path, ["C", "B"]).result
    assert (pair.against, pair.variant_id) == (LIKELY, "query.hyde-always")


@pytest.mark.parametrize(
    ("variants", "questions", "reason"),
    [("Z", 5, "allowed are A baseline, B rerank"), ("A", 5, "two different variants"), ("B", 0, "1 or more")],
)
def test_what_cannot_be_judged_is_one_sentence(run: RunFolder, variants: str, questions: int, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        rag_lab.prefer(run.path, variants, questions=questions)


def test_where_both_show_the_same_the_page_says_so_and_a_notebook_goes_on(run: RunFolder) -> None:
    texts = (run.path / "variants" / "baseline" / "traces.jsonl").read_text(encoding="utf-8")
    (run.path / "variants" / LIKELY / "traces.jsonl").write_text(texts, encoding="utf-8")
    asked = rag_lab.prefer(run.path, "B")
    assert asked.now is None and not asked.trials
    assert "Both variants show the same for every question; name two others" in asked.to_html()
    assert "Nobody has judged" in asked.result.sentence
