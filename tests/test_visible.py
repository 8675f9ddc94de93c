import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.errors import RagLabError
from rag_lab.records import Problem
from rag_lab.visible import shortened, visible, visible_json


def test_a_control_character_is_shown_as_python_writes_it():
    assert visible("a\x1b[31mb\x9b\u202ec\x00\x7f\r\ud800") == r"a\x1b[31mb\x9b\u202ec\x00\x7f\x0d\ud800"


def test_no_word_of_a_sentence_goes_on_for_a_thousand_characters():
    assert shortened(f"The id {'q' * 1_000_000} stands twice.") == f"The id {'q' * 100}… stands twice."
    assert str(RagLabError("x" * 5000)) == str(Problem("a", "x" * 5000))[3:] == "x" * 100 + "…"
    assert shortened("a/" * 499) == "a/" * 499


def test_lines_tabs_and_scripts_of_all_directions_stay():
    text = "Maßnahme\n\tמדריך הפעלה, دليل, 取扱説明書 🛠️ 👩‍🔧"
    assert visible(text) == text


@given(st.text(st.characters(codec=None)))
def test_nothing_that_steers_is_left_and_the_rest_stays_in_order(text):
    told = visible(text)
    told.encode()
    assert not [c for c in told if unicodedata.category(c) == "Cc" and c not in "\n\t"]
    assert not [
        c
        for c in told
        if unicodedata.bidirectional(c) in {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    ]
    assert visible(told) == told
    kept = [c for c in text if visible(c) == c]
    rest = iter(told)
    assert all(c in rest for c in kept)


@given(st.dictionaries(st.text(), st.text()))
def test_json_holds_the_same_values(value):
    text = visible_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(text) == value
    assert visible(text) == text


@pytest.mark.parametrize("text", ["", "plain", r"C:\x1b"])
def test_ordinary_text_is_left_alone(text):
    assert visible(text) == text
