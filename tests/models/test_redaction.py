import pytest

from rag_lab.models.redaction import one_line, redact


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer hunter2secret",
        "https://host/v1beta/models?key=hunter2secret&alt=json",
        '{"api_key": "hunter2secret"}',
        "api-key=hunter2secret",
        "http://me:hunter2secret@host/v1",
        "Incorrect API key provided: sk-hunter2secret",
    ],
)
def test_what_looks_like_a_key_is_hidden(text):
    assert "hunter2secret" not in redact(text)
    assert "[hidden]" in redact(text)


def test_keys_of_the_environment_are_hidden_whatever_they_look_like(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "plainword")
    assert redact("the key plainword is wrong") == "the key [hidden] is wrong"


def test_ordinary_text_is_left_alone():
    text = "Press the key at http://host/v1: the token budget is 5."
    assert redact(text) == text


def test_one_line_is_short_and_single():
    assert one_line("a\n b\t c", 3) == "a b"
