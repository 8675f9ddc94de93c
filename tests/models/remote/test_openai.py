import logging

import pytest

from rag_lab.errors import ModelError
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.models.remote.requests import RetryPolicy
from rag_lab.testing import Scripted, openai_server

ASKED = ChatRequest((Message("system", "Be brief."), Message("user", "Capital of France?")), max_tokens=9, seed=4)


def model_of(server, attempts=3, **options):
    model = OpenAIChat("tiny", base_url=server.url, concurrency=1, **options)
    model.waits = []
    model.retry = RetryPolicy(attempts, model.waits.append)
    return model


def test_a_round_trip():
    with openai_server(["Paris."]) as server:
        (reply,) = model_of(server).generate([ASKED])
    assert (reply.text, reply.tokens_in, reply.tokens_out, reply.cost_usd) == ("Paris.", 7, 3, 0)
    (body,) = server.bodies
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Capital of France?"},
    ]
    assert (body["model"], body["max_tokens"], body["temperature"], body["seed"]) == ("tiny", 9, 0, 4)


def test_a_schema_goes_out_and_a_reply_that_was_cut_off_is_kept():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    asked = ChatRequest(ASKED.messages, json_schema=schema)
    with openai_server([Scripted('{"a": "b', finish="length")]) as server:
        (reply,) = model_of(server).generate([asked])
    assert (reply.text, reply.truncated, reply.error) == ('{"a": "b', True, "")
    sent = server.bodies[0]["response_format"]
    assert (sent["type"], sent["json_schema"]["schema"]) == ("json_schema", schema)


@pytest.mark.parametrize("answer", [Scripted("four", thinking="2+2"), "<think>2+2</think>four"])
def test_thinking_is_kept_apart(answer):
    with openai_server([answer]) as server:
        (reply,) = model_of(server).generate([ASKED])
    assert (reply.text, reply.thinking) == ("four", "2+2")


def test_a_thinking_switch_goes_to_templates_that_know_it():
    with openai_server() as server:
        model = OpenAIChat("Qwen3-8B", base_url=server.url)
        model.generate([ASKED])
    assert server.bodies[0]["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}


def test_no_text_is_an_error():
    with openai_server([Scripted("", finish="content_filter")]) as server:
        (reply,) = model_of(server).generate([ASKED])
    assert "content_filter" in reply.error


@pytest.mark.parametrize(
    ("status", "said"), [(401, "key was rejected"), (403, "key was rejected"), (404, "know the model")]
)
def test_what_no_request_can_survive_is_an_exception(status, said, monkeypatch, caplog):
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2secret")
    with (
        openai_server([Scripted("hunter2secret is wrong", status=status)] * 9) as server,
        caplog.at_level(logging.DEBUG, "rag_lab"),
        pytest.raises(ModelError, match=said) as caught,
    ):
        model_of(server).generate([ASKED] * 4)
    assert server.headers[0]["authorization"] == "Bearer hunter2secret"
    assert "hunter2secret" not in f"{caught.value}{caplog.text}"


def test_a_server_elsewhere_needs_a_key(monkeypatch):
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        OpenAIChat("gpt-4o-mini").generate([ASKED])
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:hunter2secret@host/v1")
    with pytest.raises(ModelError, match="OPENAI_BASE_URL") as caught:
        OpenAIChat("m").generate([ASKED])
    assert "hunter2secret" not in str(caught.value)


def test_the_address_comes_from_the_environment(monkeypatch):
    with openai_server(["Paris."]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        model = OpenAIChat("tiny")
        assert model.identity()["base_url"] == server.url
        assert model.generate([ASKED])[0].text == "Paris."


def test_openai_itself_gets_its_own_names_and_prices():
    model = OpenAIChat("gpt-4o-mini")
    assert model.priced
    assert model.call_options(ASKED)["extra_body"] == {"max_completion_tokens": 9, "temperature": 0.0}


def test_a_server_of_ones_own_costs_what_the_users_table_says_and_else_nothing(tmp_path, monkeypatch):
    table = tmp_path / "prices.toml"
    monkeypatch.setenv("RAG_LAB_PRICES", str(table))
    with openai_server(["Paris."] * 2) as server:
        model = OpenAIChat("gpt-4o", base_url=server.url)  # the name of a model that costs money elsewhere
        table.write_text('checked = 2026-11-30\n[usd_per_million_tokens]\n"other" = [1, 2]\n')
        assert model.generate([ASKED])[0].cost_usd == 0
        table.write_text('checked = 2026-11-30\n[usd_per_million_tokens]\n"gpt-4o" = [1, 2]\n')
        reply = model.generate([ASKED])[0]
    assert reply.cost_usd == pytest.approx((reply.tokens_in + 2 * reply.tokens_out) / 1e6) != 0
