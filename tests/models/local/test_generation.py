"""With a random model of Qwen3's architecture: what it writes is nonsense, what it keeps to is not."""

import json

import jsonschema
import pytest

from rag_lab.errors import ModelError
from rag_lab.models.local.transformers import TransformersChat, check_batch, is_sampled, sampling_of
from rag_lab.models.protocols import LISTENER, ChatReply, ChatRequest, Message
from rag_lab.stages.chat_template import read_json
from rag_lab.stages.generate import SCHEMA
from rag_lab.testing import ScriptedChat

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


def test_a_reply_alone_is_heard_while_it_is_written_without_its_thought(always):
    heard = []
    token = LISTENER.set(heard.append)
    try:
        (reply,) = always.generate([ask(thinking_tokens=16)])
        n = len(heard)
        always.generate([ask(), ask()])
    finally:
        LISTENER.reset(token)
    assert reply.thinking
    assert reply.text == heard[-1].strip() != ""
    assert len(set(heard)) > 3
    assert len(heard) == n  # of two, nobody knows whose the pieces are


@pytest.mark.slow
def test_a_hundred_replies_are_read_at_any_length_of_thought(tiny_thinker):
    model = TransformersChat(str(tiny_thinker), device="cpu", batch_size=100)  # one long batch: a step costs the most
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


def settings(model_type="qwen3", card=(), thinks=True, **asked):
    from transformers import GenerationConfig, PretrainedConfig

    config = PretrainedConfig()
    config.model_type = model_type
    return sampling_of(config, GenerationConfig(do_sample=True, **dict(card)), ChatRequest((), **asked), thinks)


QWEN3 = {"temperature": 0.6, "top_p": 0.95, "top_k": 20}


def test_a_temperature_of_zero_is_greedy():
    assert settings(card=QWEN3)["do_sample"] is False
    assert not is_sampled(ChatRequest(()), thinks=True)
    assert not is_sampled(ChatRequest((), thinking_tokens=64), thinks=False)


def test_thinking_is_sampled_as_the_card_says():
    found = settings(card={**QWEN3, "min_p": 0.05}, thinking_tokens=64)
    assert found == {"do_sample": True, **QWEN3, "min_p": 0.05}


def test_thinking_without_a_card_is_never_greedy():
    assert settings("llama", thinking_tokens=64) == {"do_sample": True, **QWEN3, "min_p": None}
    assert settings("llama", {"top_k": 40}, thinking_tokens=64)["top_k"] == 40


def test_qwen3_without_thinking_has_settings_that_its_file_does_not_name():
    found = settings(card=QWEN3, temperature=0.7)
    assert (found["temperature"], found["top_p"], found["top_k"]) == (0.7, 0.8, 20)


def test_other_models_have_what_their_card_names_and_nothing_by_chance():
    gemma = settings("gemma3", {"top_k": 64, "top_p": 0.95}, thinks=False, temperature=1.0)
    assert gemma == {"do_sample": True, "temperature": 1.0, "top_k": 64, "top_p": 0.95, "min_p": None}
    bare = settings("llama", thinks=False, temperature=0.5)
    assert bare == {"do_sample": True, "temperature": 0.5, "top_k": 0, "top_p": 1.0, "min_p": None}


@pytest.mark.parametrize("thinking_tokens", [0, 64])
def test_what_a_request_says_goes_first(thinking_tokens):
    asked = {"temperature": 0.3, "top_p": 0.5, "top_k": 7, "min_p": 0.1}
    assert settings(card=QWEN3, thinking_tokens=thinking_tokens, **asked) == {"do_sample": True, **asked}


def asked(text, **settings):
    return ChatRequest((Message("user", text),), max_tokens=12, **settings)


REQUESTS = [asked("grease " * n) for n in range(1, 8)]


def test_padding_does_not_change_what_a_model_writes(tiny_thinker):
    model = TransformersChat(str(tiny_thinker), device="cpu", batch_size=4)
    found = check_batch(model, REQUESTS)
    assert [alone.text for alone, _ in found] == [together.text for _, together in found]
    assert len(found) == 7
    assert all(reply.tokens_out > 0 and reply.seconds > 0 for pair in found for reply in pair)


class Careless(ScriptedChat):
    """It answers the third of several requests in its own way, as one does whose padding is read."""

    def generate(self, requests):
        replies = super().generate(requests)
        if len(requests) > 2:
            replies[2] = ChatReply("something else")
        return replies


def test_what_changes_stands_at_its_place():
    found = check_batch(Careless(lambda request: "the same"), REQUESTS)
    assert [n for n, (alone, together) in enumerate(found) if alone.text != together.text] == [2]


def test_a_sampled_request_says_nothing_about_batches():
    for request in (asked("x", temperature=0.5), asked("x", thinking_tokens=64)):
        with pytest.raises(ModelError, match="greedy requests: temperature 0 and no thinking"):
            check_batch(ScriptedChat(lambda request: "the same"), [REQUESTS[0], request])


def test_a_request_without_a_reply_is_no_agreement():
    with pytest.raises(ModelError, match="no reply to compare: out of memory"):
        check_batch(ScriptedChat(lambda request: ChatReply(error="out of memory")), REQUESTS)
