import json
from dataclasses import replace

import pytest
from loopback_models import Scripted, gemini_server
from pytest import approx

from rag_lab.errors import ModelError
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.remote.gemini import GeminiChat, gemini_thinking
from rag_lab.models.remote.retries import RetryPolicy
from rag_lab.models.shared import most_usd

KEY = "AIzaHunter2Secret"
ASKED = ChatRequest((Message("system", "Be brief."), Message("user", "Capital of France?")), max_tokens=9, seed=4)
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", KEY)


def model_of(server, attempts=3, **options):
    model = GeminiChat("gemini-2.5-flash", base_url=server.url, concurrency=1, **options)
    model.waits = []
    model.retry = RetryPolicy(attempts, model.waits.append)
    return model


def test_a_round_trip():
    with gemini_server(["Paris."]) as server:
        (reply,) = model_of(server).generate([ASKED])
    assert (reply.text, reply.tokens_in, reply.tokens_out) == ("Paris.", 7, 3)
    assert reply.cost_usd == pytest.approx((7 * 0.30 + 3 * 2.50) / 1e6)
    (body,), (path,) = server.bodies, server.paths
    assert path.endswith("models/gemini-2.5-flash:generateContent")
    assert KEY not in path
    assert body["systemInstruction"]["parts"] == [{"text": "Be brief."}]
    assert body["contents"] == [{"role": "user", "parts": [{"text": "Capital of France?"}]}]
    sent = body["generationConfig"]
    assert (sent["maxOutputTokens"], sent["temperature"], sent["seed"]) == (9, 0, 4)
    assert sent["thinkingConfig"] == {"thinking_budget": 0}


def test_a_schema_goes_out_and_a_reply_that_was_cut_off_is_kept():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    with gemini_server([Scripted('{"a": "b', finish="length")]) as server:
        (reply,) = model_of(server).generate([ChatRequest(ASKED.messages, json_schema=schema)])
    assert (reply.text, reply.truncated, reply.error) == ('{"a": "b', True, "")
    sent = server.bodies[0]["generationConfig"]
    assert (sent["responseMimeType"], sent["responseJsonSchema"]) == ("application/json", schema)


def test_thinking_is_asked_for_and_kept_apart():
    with gemini_server([Scripted("four", thinking="2+2")]) as server:
        (reply,) = model_of(server).generate([ChatRequest(ASKED.messages, thinking_tokens=64)])
    assert (reply.text, reply.thinking) == ("four", "2+2")
    assert server.bodies[0]["generationConfig"]["thinkingConfig"] == {"include_thoughts": True, "thinking_budget": 64}


def test_a_model_that_cannot_stop_thinking_gets_its_room_beside_the_replys():
    with gemini_server([Scripted("four", thinking="2+2")] * 2) as server:
        for name, config in (
            ("gemini-2.5-pro", {"include_thoughts": True, "thinking_budget": 128}),
            ("gemini-3.5-flash", {"include_thoughts": True, "thinking_level": "MINIMAL"}),
        ):
            GeminiChat(name, base_url=server.url).generate([ASKED])
            sent = server.bodies[-1]["generationConfig"]
            assert (sent["thinkingConfig"], sent["maxOutputTokens"]) == (config, 9 + 128)


def test_thinking_and_its_budget_are_part_of_the_bound_on_costs():
    pro, flash = GeminiChat("gemini-2.5-pro"), GeminiChat("gemini-2.5-flash")
    bigger = replace(ASKED, thinking_tokens=128)
    assert most_usd(pro, ASKED) == most_usd(pro, bigger)
    assert most_usd(flash, ASKED) < most_usd(flash, bigger)


def test_sampling_goes_out_and_what_gemini_does_not_take_is_refused_before_anything_is_sent():
    with gemini_server(["four"]) as server:
        model = model_of(server)
        model.generate([replace(ASKED, top_p=0.5, top_k=7)])
        assert (server.bodies[0]["generationConfig"]["topP"], server.bodies[0]["generationConfig"]["topK"]) == (0.5, 7)
        with pytest.raises(ModelError, match=r"takes no min_p; leave answer\.min_p at null"):
            model.generate([ASKED, replace(ASKED, min_p=0.1)])
        with pytest.raises(ModelError, match="thinks with at most 24,576 tokens, and 30,000 were asked for"):
            model.generate([replace(ASKED, thinking_tokens=30_000)])
        assert len(server.bodies) == 1


def test_the_services_count_of_thoughts_is_kept_apart():
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 20, "totalTokenCount": 30}
    parts = [{"text": "short summary", "thought": True}, {"text": "four"}]
    body = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "usageMetadata": usage}
    with gemini_server([Scripted(raw=json.dumps(body))]) as server:
        (reply,) = model_of(server).generate([replace(ASKED, thinking_tokens=64)])
    assert (reply.tokens_out, reply.thinking_tokens, reply.text) == (23, 20, "four")


def test_googles_retry_delay_is_waited_for():
    answers = [Scripted(status=429, details=[RETRY_INFO]), "Paris."]
    with gemini_server(answers) as server:
        model = model_of(server)
        (reply,) = model.generate([ASKED])
    assert (reply.text, model.waits[0], len(server.bodies)) == ("Paris.", approx(17, abs=1), 2)


def test_without_a_key_nothing_is_sent(monkeypatch):
    monkeypatch.delenv("GEMINI_API_KEY")
    with gemini_server() as server, pytest.raises(ModelError, match="GOOGLE_API_KEY or GEMINI_API_KEY"):
        model_of(server).generate([ASKED])
    assert server.bodies == []


@pytest.mark.parametrize(
    ("name", "tokens", "options"),
    [
        ("gemini-2.5-pro", 128, {"thinking_budget": 128, "include_thoughts": True}),
        ("gemini-2.5-pro", 5000, {"thinking_budget": 5000, "include_thoughts": True}),
        ("models/gemini-2.5-flash", 0, {"thinking_budget": 0}),
        ("gemini-2.5-flash", 16, {"thinking_budget": 16, "include_thoughts": True}),
        ("gemini-2.5-flash-lite", 0, {"thinking_budget": 0}),
        ("gemini-2.5-flash-lite", 16, {"thinking_budget": 512, "include_thoughts": True}),
        ("gemini-3-flash-preview", 1023, {"thinking_level": "minimal", "include_thoughts": True}),
        ("gemini-3-flash-preview", 8192, {"thinking_level": "medium", "include_thoughts": True}),
        ("gemini-3-pro-preview", 8192, {"thinking_level": "low", "include_thoughts": True}),
        ("gemini-3.1-pro-preview", 30_000, {"thinking_level": "high", "include_thoughts": True}),
        ("gemini-flash-latest", 2048, {"thinking_level": "low", "include_thoughts": True}),
        ("gemini-4-argon", 2048, {"thinking_level": "low", "include_thoughts": True}),
    ],
)
def test_a_budget_becomes_what_the_family_takes(name, tokens, options):
    assert gemini_thinking(name).options(tokens) == options


def test_what_cannot_stop_thinking_has_a_least_and_what_does_not_think_is_not_asked_to():
    least = {"gemini-2.5-pro": 128, "gemini-2.5-flash": 0, "gemini-2.5-flash-lite": 0, "gemini-3-pro-preview": 1024,
             "gemini-3.5-flash": 128}  # fmt: skip
    assert {name: GeminiChat(name).least_thinking_tokens for name in least} == least
    for name in ("gemini-2.0-flash", "gemini-1.5-pro", "gemma-3-27b-it", "learnlm"):
        assert gemini_thinking(name) is None


def test_the_levels_are_those_of_the_installed_librarys_profiles(monkeypatch):
    library = pytest.importorskip("langchain_google_genai")
    for name in ("gemini-3-flash-preview", "gemini-3-pro-preview", "gemini-3.1-pro-preview", "gemini-3.5-flash"):
        profile = library.ChatGoogleGenerativeAI(model=name, google_api_key="none").profile
        assert list(gemini_thinking(name).levels) == profile["reasoning_effort_levels"]
