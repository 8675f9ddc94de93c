"""Thinking of llama.cpp's models ends at its budget, and the reply that follows is held to its schema."""

import json

import pytest
from tiny_models import ALWAYS_THINKING, write_thinking_gguf

from rag_lab.models.local.llamacpp import LlamaCppChat
from rag_lab.models.protocols import ChatRequest, Message

pytestmark = pytest.mark.slow

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 40}},
    "required": ["answer"],
    "additionalProperties": False,
}
TOPICS = ("grease of the guides", "torque of the bolts", "alarm A7", "who signs the permit", "what is 2 + 2?")


def ask(text, **settings):
    return ChatRequest((Message("user", text),), **{"max_tokens": 96, "json_schema": SCHEMA, **settings})


@pytest.fixture(scope="module")
def switched(tmp_path_factory):
    return LlamaCppChat(str(write_thinking_gguf(tmp_path_factory.mktemp("gguf") / "switched.gguf")), context=1024)


@pytest.fixture(scope="module")
def always(tmp_path_factory):
    path = write_thinking_gguf(tmp_path_factory.mktemp("gguf") / "always.gguf", ALWAYS_THINKING)
    return LlamaCppChat(str(path), context=1024)


def test_every_reply_is_an_object_however_long_it_was_to_think(switched):
    budgets = [1, 2, 3, 5, 13, 34]
    requests = [ask(topic, thinking_tokens=budget, seed=3) for budget in budgets for topic in TOPICS[:3]]
    replies = switched.generate(requests)
    for request, reply in zip(requests, replies, strict=True):
        assert list(json.loads(reply.text)) == ["answer"], (request.thinking_tokens, reply)
        assert not reply.truncated
        assert reply.thinking_tokens <= request.thinking_tokens
        assert reply.thinking_tokens <= reply.tokens_out
    assert min(reply.thinking_tokens for reply in replies[-3:]) > 20  # it does think


def test_a_reply_without_thinking_has_none(switched):
    (reply,) = switched.generate([ask(TOPICS[0])])
    assert (reply.thinking, reply.thinking_tokens) == ("", 0)
    assert list(json.loads(reply.text)) == ["answer"]


def test_a_model_that_cannot_stop_thinking_is_stopped_at_once(always):
    for reply in always.generate([ask(topic) for topic in TOPICS[:2]]):
        assert list(json.loads(reply.text)) == ["answer"]
        assert reply.thinking_tokens <= 1


def test_in_a_small_context_the_reply_keeps_its_length(switched):
    (reply,) = switched.generate([ask("grease " * 600, thinking_tokens=2000)])
    assert list(json.loads(reply.text)) == ["answer"]
    assert 0 < reply.thinking_tokens < 1024 - 600


def test_thoughts_are_sampled_and_the_same_seed_thinks_the_same(switched):
    one, again, other = switched.generate([ask(TOPICS[4], thinking_tokens=40, seed=seed) for seed in (1, 1, 2)])
    assert one.thinking == again.thinking != other.thinking


def test_a_switched_thought_before_changes_no_reply(switched):
    earlier = (
        Message("system", "You answer questions about a plant."),
        Message("user", "oil?"),
        Message("assistant", "{}"),
    )
    plain = ChatRequest((*earlier, Message("user", TOPICS[2])), 32, json_schema=SCHEMA)
    thinking = ChatRequest(plain.messages, 32, json_schema=SCHEMA, thinking_tokens=20)
    before = switched.generate([plain])[0].text
    assert [reply.text for reply in switched.generate([thinking, plain])][1] == before


def test_what_can_think_is_told_by_the_identity(switched, real_home):
    assert switched.identity()["thinking"] == 1
    assert "thinking" not in LlamaCppChat("smollm2").identity()


def test_a_model_that_cannot_think_does_not_get_the_room_for_it(real_home):
    model = LlamaCppChat("smollm2")
    (reply,) = model.generate([ask("Count from 1 to 1000.", json_schema=None, max_tokens=20, thinking_tokens=500)])
    assert (reply.thinking_tokens, reply.truncated, reply.tokens_out) == (0, True, 20)
