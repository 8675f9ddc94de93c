import json
import re
from dataclasses import dataclass, replace

import pytest
from loopback_models import Scripted, openai_server

from rag_lab.errors import ModelError
from rag_lab.models.protocols import ChatRequest, Message, with_least_thinking
from rag_lab.models.remote.openai import OpenAIChat
from rag_lab.models.remote.retries import RetryPolicy

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


def test_a_server_elsewhere_needs_a_key(monkeypatch):
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        OpenAIChat("gpt-4o-mini").generate([ASKED])
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:hunter2secret@host/v1")
    with pytest.raises(ModelError, match="OPENAI_BASE_URL") as caught:
        OpenAIChat("m").generate([ASKED])
    assert "hunter2secret" not in str(caught.value)


def test_address_and_key_come_from_the_environment(monkeypatch):
    with openai_server(["Paris."]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "hunter2secret")
        model = OpenAIChat("tiny")
        assert model.identity()["base_url"] == server.url
        assert model.generate([ASKED])[0].text == "Paris."
    assert server.headers[0]["authorization"] == "Bearer hunter2secret"


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


SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
THINKING = ChatRequest((Message("user", "Why?"),), max_tokens=20, json_schema=SCHEMA, thinking_tokens=30)
OBJECT = '{"answer": "so"}'


@dataclass
class Server:
    """A server as vLLM is with these settings: `thinks` words unless its template is told not to, a word a token."""

    thinks: int = 10
    keeps_budget: bool = True
    refuses_budget: bool = False
    has_parser: bool = True
    goes_on: bool = True
    always_thinks: bool = False

    def __call__(self, body):
        budget = body.get("thinking_token_budget")
        if budget is not None and self.refuses_budget:
            return Scripted("thinking_token_budget is set but reasoning_config is not configured", status=400)
        if body.get("continue_final_message"):
            return self.behind(body) if self.goes_on else Scripted("no such field", status=400)
        switch = body.get("chat_template_kwargs", {}).get("enable_thinking")
        held = "response_format" in body and not self.has_parser
        thinks = 0 if held or (switch is False and not self.always_thinks) else self.thinks
        if budget is not None and self.keeps_budget:
            thinks = min(thinks, budget)
        thought = " ".join(["word"] * min(thinks, body["max_tokens"]))
        if thinks >= body["max_tokens"]:
            return self.reply("", thought, "length", body["max_tokens"])
        text = OBJECT if "response_format" in body else f"Well, {OBJECT}"
        return self.reply(text, thought, "stop", thinks + 8)

    def behind(self, body):
        last = body["messages"][-1]
        closed = re.fullmatch(r"<think>\n(.*)\n</think>\n\n", last["content"], re.DOTALL)
        assert last["role"] == "assistant" and closed
        assert body["chat_template_kwargs"]["enable_thinking"] is False
        return self.reply(json.dumps({"answer": f"after {len(closed[1].split())}"}), "", "stop", 8)

    def reply(self, text, thought, finish, tokens_out):
        message = {"role": "assistant", "content": text}
        if thought and self.has_parser:
            message["reasoning"] = thought
        elif thought:
            message["content"] = f"<think>{thought}</think>{text}" if text else f"<think>{thought}"
        choice = {"index": 0, "message": message, "finish_reason": finish}
        usage = {"prompt_tokens": 7, "completion_tokens": tokens_out, "total_tokens": 7 + tokens_out}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "", "choices": [choice]}
        return Scripted(raw=json.dumps(body | {"usage": usage}))


def asked(server, request=THINKING, n=1, name="tiny"):
    with openai_server(server) as running:
        model = OpenAIChat(name, base_url=running.url, concurrency=1, max_attempts=1)
        replies = model.generate([request] * n)
    return replies, running.bodies


def test_a_server_that_keeps_the_budget_is_asked_once():
    (reply,), (body,) = asked(Server(thinks=500))
    assert (reply.text, len(reply.thinking.split())) == (OBJECT, 30)
    assert body["max_tokens"] == 50
    assert body["thinking_token_budget"] == body["thinking_budget_tokens"] == 30
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert "temperature" not in body  # that of the card: greedy thinking goes in circles


def test_tokens_of_thought_are_counted_apart():
    (reply,), _ = asked(Server(thinks=10))
    assert reply.tokens_out == 18
    assert 0 < reply.thinking_tokens < 18


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("thinks", [49, 50, 500])
def test_a_thought_that_outruns_its_budget_is_closed_and_the_reply_goes_on_under_the_schema(thinks, refuses):
    (reply, again), bodies = asked(Server(thinks, keeps_budget=False, refuses_budget=refuses), n=2)
    assert reply == replace(again, seconds=reply.seconds)
    if thinks < 50:
        assert reply.text == OBJECT
        return
    assert json.loads(reply.text) == {"answer": "after 30"}  # of 50 words, those of the budget
    assert (len(reply.thinking.split()), reply.thinking_tokens, reply.truncated) == (30, 50, False)
    assert reply.tokens_out == 58
    assert sum("thinking_token_budget" in body for body in bodies) == (1 if refuses else 2)  # refused once, not again
    assert bodies[-1]["max_tokens"] == 20


def test_a_request_that_is_refused_for_another_reason_is_no_word_on_budgets():
    def server(body):
        return Scripted("too long", status=400) if body["messages"][0]["content"] == "long" else Server(500)(body)

    with openai_server(server) as running:
        model = OpenAIChat("tiny", base_url=running.url, concurrency=1)
        long = replace(THINKING, messages=(Message("user", "long"),))
        replies = model.generate([long, THINKING])
    assert replies[0].error == "the server answered with status 400: too long"
    assert len(replies[1].thinking.split()) == 30
    assert "thinking_token_budget" in running.bodies[-1]


def test_a_server_that_cannot_go_on_gives_what_it_gave():
    (reply,), bodies = asked(Server(500, keeps_budget=False, goes_on=False))
    assert (reply.text, reply.truncated, reply.error, reply.transient) == ("", True, "", False)
    assert reply.thinking
    assert len(bodies) == 2


def test_a_thought_whose_reply_was_lost_with_the_server_may_be_cured_by_another_attempt():
    def server(body):
        gone = body.get("continue_final_message") or body["thinking_token_budget"] == 1
        return Scripted("overloaded", status=503) if gone else Server(500, keeps_budget=False)(body)

    (reply,), _ = asked(server)
    assert (reply.text, reply.error, reply.transient) == ("", "", True)


@pytest.mark.parametrize("n", [1, 4])
def test_a_server_without_a_parser_thinks_without_the_schema_and_replies_under_it(n):
    replies, bodies = asked(Server(10, has_parser=False), n=n)
    assert {(reply.text, len(reply.thinking.split())) for reply in replies} == {('{"answer": "after 10"}', 10)}
    assert len(bodies) == 1 + 2 * n  # what the first reply showed need not be found out again


@pytest.mark.parametrize("n", [1, 4])
def test_a_model_that_does_not_think_is_asked_again_once(n):
    replies, bodies = asked(Server(0), n=n)
    assert {(reply.text, reply.thinking, reply.thinking_tokens) for reply in replies} == {(OBJECT, "", 0)}
    assert len(bodies) == n + 1


def test_a_thought_that_ends_without_a_reply_is_gone_on_with():
    def server(body):
        return Server()(body) if body.get("continue_final_message") else Server().reply("", "word word", "stop", 3)

    (reply,), _ = asked(server)
    assert json.loads(reply.text) == {"answer": "after 2"}


def test_a_model_that_thinks_unasked_is_stopped_and_replies():
    (reply,), bodies = asked(
        Server(500, always_thinks=True), replace(THINKING, thinking_tokens=0), name="qwen3-thinking"
    )
    assert json.loads(reply.text) == {"answer": "after 0"}
    assert reply.thinking_tokens == 20
    assert bodies[0]["chat_template_kwargs"] == {"enable_thinking": False, "thinking": False}


def test_a_server_that_has_a_price_is_never_asked_twice(tmp_path, monkeypatch):
    table = tmp_path / "prices.toml"
    table.write_text('checked = 2026-11-30\n[usd_per_million_tokens]\n"tiny" = [1, 2]\n')
    monkeypatch.setenv("RAG_LAB_PRICES", str(table))
    (reply,), bodies = asked(Server(500, keeps_budget=False))
    assert (reply.text, len(bodies)) == ("", 1)
    assert reply.cost_usd > 0


def test_sampling_goes_out_as_it_is_set():
    _, (body,) = asked(Server(), replace(THINKING, top_p=0.5, top_k=7, min_p=0.1, temperature=0.4))
    assert (body["top_p"], body["top_k"], body["min_p"], body["temperature"]) == (0.5, 7, 0.1, 0.4)


@pytest.mark.parametrize(
    ("name", "tokens", "effort", "samples"),
    [
        ("gpt-4o-mini", 0, None, True),
        ("gpt-4o-mini", 500, None, True),
        ("gpt-5", 0, "minimal", False),
        ("gpt-5-2025-08-07", 2048, "low", False),
        ("gpt-5.1", 0, "none", True),
        ("gpt-5.1", 9000, "medium", False),
        ("o3", 0, "low", False),
        ("o3", 30_000, "high", False),
    ],
)
def test_openai_itself_is_asked_by_effort_and_keeps_room_for_what_cannot_be_stopped(name, tokens, effort, samples):
    model = OpenAIChat(name)
    request = with_least_thinking(model, replace(THINKING, thinking_tokens=tokens, top_p=0.5))
    body = model.call_options(request)["extra_body"]
    assert body.get("reasoning_effort") == effort
    assert ("temperature" in body, "top_p" in body) == (samples, samples)
    room = 0 if effort is None else max(tokens, {"gpt-5": 128, "o3": 1024}.get(name, 0))
    assert body["max_completion_tokens"] == 20 + room
    assert model.identity().get("least_thinking_tokens", 0) == {"gpt-5": 128, "gpt-5-2025-08-07": 128, "o3": 1024}.get(
        name, 0
    )


def test_openai_itself_takes_no_top_k(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2secret")
    with pytest.raises(ModelError, match=r"takes no top_k; leave answer\.top_k at null"):
        OpenAIChat("gpt-4o-mini").generate([replace(THINKING, top_k=5)])
