import pytest

from rag_lab.errors import ModelError
from rag_lab.models.local.generation import check_batch
from rag_lab.models.local.transformers import TransformersChat
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.testing import ScriptedChat


def ask(text, **settings):
    return ChatRequest((Message("user", text),), max_tokens=12, **settings)


REQUESTS = [ask("grease " * n) for n in range(1, 8)]


def test_padding_does_not_change_what_a_model_writes(tiny_thinker):
    model = TransformersChat(str(tiny_thinker), device="cpu", batch_size=4)
    found = check_batch(model, REQUESTS)
    assert found.changed == ()
    assert len(found.alone) == len(found.together) == 7
    assert all(speed > 0 for speed in found.tokens_a_second)


class Careless(ScriptedChat):
    """It answers the third of several requests in its own way, as one does whose padding is read."""

    def generate(self, requests):
        replies = super().generate(requests)
        if len(requests) > 2:
            replies[2] = ChatReply("something else")
        return replies


def test_what_changes_is_named_by_its_place():
    assert check_batch(Careless(lambda request: "the same"), REQUESTS).changed == (2,)


def test_a_sampled_request_says_nothing_about_batches():
    for request in (ask("x", temperature=0.5), ask("x", thinking_tokens=64)):
        with pytest.raises(ModelError, match="greedy requests: temperature 0 and no thinking"):
            check_batch(ScriptedChat(lambda request: "the same"), [REQUESTS[0], request])


def test_a_request_without_a_reply_is_no_agreement():
    with pytest.raises(ModelError, match="no reply to compare: out of memory"):
        check_batch(ScriptedChat(lambda request: ChatReply(error="out of memory")), REQUESTS)
