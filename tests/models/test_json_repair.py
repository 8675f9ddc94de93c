import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.stages.chat_template import RepairError, read_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), values))
def test_plain_json_is_read_as_it_is(value):
    assert read_json(json.dumps(value)) == (value, "")


@pytest.mark.parametrize(
    ("text", "value", "rule"),
    [
        ('```json\n{"answer": "12 bar"}\n```', {"answer": "12 bar"}, "dropped the text around the object"),
        ('Sure! {"answer": "12 bar"} Hope it helps', {"answer": "12 bar"}, "dropped the text around the object"),
        ('{"answer": "12 bar", "citations": [1, 2,],}', {"answer": "12 bar", "citations": [1, 2]}, "comma"),
        ('{"answer": "12 b', {"answer": "12 b"}, "cut off"),
        ('{"answer": "12", "citations": [1, 2', {"answer": "12", "citations": [1, 2]}, "cut off"),
        ('{"answer": "12", "citations": [1,', {"answer": "12", "citations": [1]}, "cut off"),
        ('{"answer": "a \\', {"answer": "a "}, "cut off"),
        ('{"answer": "a \\u00e', {"answer": "a "}, "cut off"),
        ('{"answer": "12", "cita', {"answer": "12"}, "cut off"),
        ('{"answer": "12", "citations":', {"answer": "12"}, "cut off"),
        ('{"answer": "12, 13", "found": tr', {"answer": "12, 13"}, "cut off"),
        ('{"answer": "line\nbreak"}', {"answer": "line\nbreak"}, ""),
    ],
)
def test_each_rule(text, value, rule):
    found, used = read_json(text)
    assert found == value
    assert rule in used


@pytest.mark.parametrize("text", ["", "no object", "[1, 2]", "{answer: 12}", "{'answer': '12'}", '"text"', "{{{"])
def test_what_no_rule_reads_is_refused(text):
    with pytest.raises(RepairError):
        read_json(text)


@given(st.text())
def test_arbitrary_text_never_raises_anything_else(text):
    try:
        value, _ = read_json(text)
    except RepairError:
        return
    assert isinstance(value, dict)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=9), min_size=1), st.data())
def test_a_cut_object_is_never_read_as_more_than_it_said(value, data):
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text)))]
    try:
        found, _ = read_json(cut)
    except RepairError:
        return
    assert all(value[key].startswith(found[key]) for key in found if found[key] and key in value)


@given(st.text(min_size=1), st.lists(st.integers()), st.data())
def test_what_was_said_before_the_cut_is_always_read(answer, citations, data):
    text = json.dumps({"answer": answer, "citations": citations})
    said = len(json.dumps({"answer": answer})) - 1
    found, _ = read_json(text[: data.draw(st.integers(said, len(text)))])
    assert found["answer"] == answer.encode("utf-8", "ignore").decode()
