import base64
import html
import json
import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_lab.errors import ConfigError, RagLabError
from rag_lab.records import Problem
from rag_lab.redaction import (
    hide_known,
    hide_known_in,
    one_line,
    redact,
    redact_sentence,
    redact_value,
    shortened,
    visible,
    visible_json,
)

KEY = 'gate/way+"key"&4711 of#München'


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("TEAM_GATEWAY_API_KEY", KEY)
    return KEY


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer hunter2secret",
        "Authorization: Basic aHVudGVyMnNlY3JldA==",
        "https://host/v1beta/models?key=hunter2secret&alt=json",
        "https://host/v1?access_token=hunter2secret",
        '{"api_key": "hunter2secret"}',
        "api-key=hunter2secret",
        "http://me:hunter2secret@host/v1",
        "http://me:hunter2secret/with@signs@host/v1",
        "postgresql://me:hunter2secret@host/v1",
        "Incorrect API key provided: sk-hunter2secret",
    ],
)
def test_what_may_be_a_key_is_hidden_in_a_sentence(text):
    for told in (redact_sentence(text), str(ConfigError(text)), one_line(text)):
        assert "hunter2secret" not in told
        assert "aHVudGVy" not in told
        assert "[hidden]" in told


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "HF_TOKEN", "CLIENT_SECRET", "AWS_SECRET_ACCESS_KEY"])
def test_keys_of_the_environment_are_hidden_whatever_they_look_like(monkeypatch, name):
    monkeypatch.setenv(name, "plainword")
    assert redact("the key plainword is wrong") == "the key [hidden] is wrong"
    assert hide_known("the key plainword is wrong") == "the key [hidden] is wrong"


@pytest.mark.parametrize(
    ("name", "value"), [("OPENAI_API_KEY", "none"), ("TOKENIZERS_PARALLELISM", "plainword"), ("EDITOR", "plainword")]
)
def test_what_is_short_or_is_no_key_is_left_alone(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert hide_known("there is none, plainword") == "there is none, plainword"


def test_a_password_that_is_a_word_changes_no_document(monkeypatch):
    monkeypatch.setenv("POSTGRES_PASSWORD", "postgres")
    monkeypatch.setenv("DATABASE_URL", "postgresql://admin:postgres@127.0.0.1/traces")
    assert hide_known("see postgres/tuning.pdf, page 3") == "see postgres/tuning.pdf, page 3"
    assert hide_known("no way in for admin:postgres") == "no way in for [hidden]"
    assert redact_sentence("cannot reach postgresql://admin:postgres@127.0.0.1") == (
        "cannot reach postgresql://[hidden]@127.0.0.1"
    )


def test_the_place_of_a_key_is_no_secret(monkeypatch, tmp_path):
    monkeypatch.setenv("TLS_KEY", str(tmp_path))
    assert hide_known(f"Report: {tmp_path}/report.html") == f"Report: {tmp_path}/report.html"


def test_passwords_of_addresses_in_the_environment_are_hidden(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://me:battery%2Fstaple@proxy:3128")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://host/v1?api_key=correcthorse&x=1")
    sent = base64.b64encode(b"me:battery/staple").decode()
    told = hide_known(f"battery/staple battery%2Fstaple correcthorse Proxy-Authorization: Basic {sent}")
    assert told == "[hidden] [hidden] [hidden] Proxy-Authorization: Basic [hidden]"


@pytest.mark.parametrize(
    "written",
    [
        lambda key: key,
        lambda key: json.dumps({"said": key}),
        lambda key: json.dumps({"said": key}, ensure_ascii=False),
        lambda key: f"<p>{html.escape(key)}</p>",
        lambda key: f"?key={quote(key)}&x=1",
        lambda key: f"?key={quote(key, safe='')}&x=1",
        repr,
        lambda key: key[:12],
        lambda key: f"the key is {key[:20]}",
        lambda key: key[6:],
        *(lambda key, n=n: base64.b64encode(b"a" * n + key.encode() + b"b" * n).decode() for n in range(4)),
        lambda key: base64.urlsafe_b64encode(f"me:{key}".encode()).decode(),
    ],
)
def test_a_key_is_hidden_however_it_is_written(key, written):
    text = written(key)
    told = hide_known(text)
    assert "[hidden]" in told
    assert not any(text[start : start + 12] in told for start in range(12, len(text) - 24))


@given(st.text(), st.integers(0, 30), st.integers(0, 30))
def test_no_long_piece_of_a_key_is_left(around, start, length):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("A_TOKEN", KEY)
        told = hide_known(around + KEY[start : start + length] + around)
    pieces = [KEY[place : place + 23] for place in range(len(KEY) - 22)]
    assert not any(piece in told for piece in pieces)


def test_a_json_value_keeps_its_shape_and_numbers(monkeypatch):
    monkeypatch.setenv("A_PASSWORD", "12345678")
    value = {"cost": 0.12345678, "12345678": ["said 12345678", None, True]}
    assert hide_known_in(value) == {"cost": 0.12345678, "[hidden]": ["said [hidden]", None, True]}


def test_ordinary_text_is_left_alone():
    text = (
        "Basic settings, the bearer of news. "
        "Press the key at http://host/v1: the token budget is 5; max_tokens: above 8, b@c.de"
    )
    assert redact_sentence(text) == text


def test_data_keep_what_only_looks_like_a_secret():
    text = "The machine's default password: admin123, see http://host/?token=abc"
    assert hide_known(text) == redact(text) == text


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("openai:m?base_url=http://a:b c/d?e@h/v1&context=64", "openai:m?base_url=http://[hidden]@h/v1&context=64"),
        ("openai:m?api_key=b c&context=64", "openai:m?api_key=[hidden]&context=64"),
        ("openai:m?base_url=http%3A%2F%2Fa%3Ab%40h", "openai:m?base_url=http://[hidden]@h"),
        ("openai:m?hunter2", "openai:m?[hidden]"),
        ("llamacpp:smollm2?max_tokens=16&context=64", "llamacpp:smollm2?max_tokens=16&context=64"),
        ("openai:m?base_url=http%3A%2F%2Fh%2Fa%26b", "openai:m?base_url=http%3A%2F%2Fh%2Fa%26b"),
    ],
)
def test_a_value_is_shown_without_its_secrets(value, told):
    assert redact_value(value) == told


def test_one_line_is_short_single_and_visible():
    assert one_line("a\n b\t c", 3) == "a b"
    assert one_line("a\x1b]0;x\x07b") == r"a\x1b]0;x\x07b"


@pytest.mark.parametrize("text", ["?key" * 20_000, "a://" * 200_000, "a." * 200_000, "?" * 200_000])
def test_a_text_made_to_keep_the_patterns_busy_is_cut_before_them(text):
    assert one_line(text) == text[:300]


def test_a_password_is_not_shown_because_the_text_is_cut(monkeypatch):
    monkeypatch.setenv("TEAM_GATEWAY_API_KEY", KEY)
    assert (
        one_line(f"refused:{' ' * 20_000}{KEY} http://me:hunter2hunter2@host/ ")
        == "refused: [hidden] http://[hidden]@host/"
    )


def test_a_password_needs_no_underscore_before_its_name(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "correct4711horse")
    assert hide_known("it is correct4711horse") == "it is [hidden]"


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
def test_text_without_control_characters_is_left_alone(text):
    assert visible(text) == text
