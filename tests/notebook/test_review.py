"""Drafts reviewed one after the other, in Python as by clicks, by two people."""

import json

import pytest
from scripted_writer import write_folder

import rag_lab
from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError

HOSTILE = '<img src=x onerror=alert(1)> Which "valve"?'


@pytest.fixture
def folder(tmp_path):
    path = write_folder(tmp_path / "set")
    lines = []
    for n, question in enumerate((HOSTILE, "Which grease?", "How hot?")):
        evidence = [{"source": "press.md", "quote": "opens at 155 bar"}]
        draft = {
            "passage": "The relief <b>valve</b> opens at 155 bar.",
            "source": "press.md",
            "page": None,
            "overlap": 0.4,
        }
        lines.append(
            {"id": f"d{n}", "question": question, "answers": ["155 bar"], "evidence": evidence, "draft": draft}
        )
    (path / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_click_is_written_and_the_next_draft_is_shown(folder):
    page = rag_lab.review(folder, by="anna").widget
    assert "0 of 3 reviewed by <bdi>anna</bdi>" in page.html
    assert "<img src=x" not in page.html and "<mark>opens at 155 bar</mark>" in page.html
    page.do({"do": "class", "value": "specific", "typed": {"question": "Half typed?", "answer": "155 bar"}})
    assert ">Half typed?</textarea>" in page.html  # a click on a class takes nothing of it away
    assert 'data-value="specific" data-key="1" aria-pressed="true"' in page.html
    page.do({"do": "decide", "value": "keep", "typed": {"question": "Which valve?", "answer": "155 bar"}})
    assert "1 of 3 reviewed" in page.html and "Which grease?" in page.html
    page.do({"do": "decide", "value": "drop", "typed": {"question": "Which grease?", "answer": "155 bar"}})
    assert [one.text for one in Dataset.load(folder).questions] == ["Which valve?", "How hot?"]
    assert Dataset.load(folder).questions[0].query_class == "specific"
    page.do({"do": "decide", "value": "drop", "typed": {}})
    assert "anna: 3 of 3 reviewed (0 keep, 1 edit, 2 drop)." in page.html


def test_it_goes_on_where_it_was_left_and_a_second_person_sees_no_verdict(folder):
    rag_lab.review(folder, by="anna").decide("drop")
    again = rag_lab.review(folder, by="anna")
    assert again.now["question"] == "Which grease?" and again.done == 1
    other = rag_lab.review(folder, by="ben")
    assert other.done == 0 and len(other.lines) == 3 and "dropped" not in other.to_html()
    other._place = [line["id"] for line in other.lines].index("d0")
    other.decide("keep")
    assert len(Dataset.load(folder).questions) == 2  # half of two drop it
    other.go(-9)
    assert "Take back" in other.to_html() and other.done == 1


def test_an_impossible_click_is_a_sentence_in_the_page_and_writes_nothing(folder):
    before = (folder / "questions.jsonl").read_text()
    page = rag_lab.review(folder, by="anna").widget
    page.do({"do": "decide", "value": "perhaps"})
    assert "Unknown verdict" in page.html and (folder / "questions.jsonl").read_text() == before


def test_a_set_without_drafts_says_how_to_get_some(folder):
    (folder / "questions.jsonl").write_text(json.dumps({"question": "Mine?", "answers": ["yes"]}) + "\n")
    with pytest.raises(ConfigError, match="has no drafts to review; draft some: rag-lab questions draft"):
        rag_lab.review(folder)
