"""With a random model of Qwen3's architecture: what it writes is nonsense, what it keeps to is not."""

import json

import jsonschema
import pytest

from rag_lab.models.json_repair import read_json
from rag_lab.models.local.transformers import TransformersChat
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.stages.answer.prompts import SCHEMA

CLASS = {
    "type": "object",
    "properties": {"class": {"enum": ["fuzzy", "specific"]}},
    "required": ["class"],
    "additionalProperties": False,
}


def ask(**settings):
    return ChatRequest((Message("user", "what does the press need"),), **{"max_tokens": 48, **settings})


@pytest.fixture(scope="module")
def model(tiny_thinker):
    return TransformersChat(str(tiny_thinker), device="cpu", batch_size=8)


@pytest.fixture(scope="module")
def always(always_thinking):
    return TransformersChat(str(always_thinking), device="cpu")


@pytest.mark.slow
def test_a_hundred_replies_are_read_at_any_length_of_thought(model):
    budgets = [16 + 3 * step % 150 for step in range(100)]
    replies = model.generate([ask(thinking_tokens=n, seed=n, json_schema=SCHEMA) for n in budgets])
    answers = [read_json(reply.text)[0]["answer"] for reply in replies]  # some are cut off, as they are so long
    assert [type(answer) for answer in answers] == [str] * 100
    assert all(reply.thinking_tokens <= n for reply, n in zip(replies, budgets, strict=True))
    assert sum(reply.thinking_tokens > 0 for reply in replies) > 50
    assert all(reply.tokens_out - reply.thinking_tokens <= 48 for reply in replies)


def test_a_whole_reply_is_of_its_schema_after_any_thought_and_without(model):
    replies = model.generate([ask(json_schema=CLASS, thinking_tokens=n, seed=n) for n in range(0, 60, 3)])
    for reply in replies:
        jsonschema.validate(json.loads(reply.text), CLASS)
        assert not reply.truncated


def test_a_batch_may_hold_schemas_lengths_and_none_of_them(model):
    requests = [
        ask(json_schema=SCHEMA),
        ask(),
        ask(json_schema=CLASS, max_tokens=30),
        ask(json_schema={"type": "frob"}),
    ]
    together = [(reply.text, reply.error) for reply in model.generate(requests)]
    assert together == [(reply.text, reply.error) for request in requests for reply in model.generate([request])]
    assert "cannot be held to its schema: Invalid type: frob" in together[3][1]
    assert json.loads(together[2][0])["class"]


def test_thinking_follows_its_seed(model):
    first, again, other = model.generate([ask(thinking_tokens=40, seed=seed) for seed in (1, 1, 2)])
    assert first.thinking == again.thinking
    assert first.text == again.text
    assert (first.thinking, first.text) != (other.thinking, other.text)


@pytest.mark.parametrize("thinking_tokens", [0, 1, 30])
def test_a_model_that_always_thinks_is_ended_too(always, thinking_tokens):
    (reply,) = always.generate([ask(thinking_tokens=thinking_tokens, json_schema=CLASS)])
    assert json.loads(reply.text)["class"]
    assert 0 < reply.thinking_tokens <= max(thinking_tokens, 3)
    assert "</think>" not in reply.thinking + reply.text


def test_a_small_context_keeps_room_for_the_reply(always):
    (reply,) = always.generate([ask(thinking_tokens=2000, json_schema=CLASS)])
    assert json.loads(reply.text)["class"]
    assert reply.tokens_in + reply.thinking_tokens + 48 <= always.context_tokens == 160
    (full,) = always.generate([ChatRequest((Message("user", "x" * 150),), thinking_tokens=16)])
    assert "context holds 160" in full.error
