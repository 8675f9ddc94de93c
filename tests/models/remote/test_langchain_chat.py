from dataclasses import replace
from typing import ClassVar

import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from rag_lab.errors import ModelError
from rag_lab.models.custom_models import object_model
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.providers import CHAT_MODELS
from rag_lab.models.remote.langchain_chat import LangChainChat


def test_any_langchain_model_serves_with_its_thinking_and_counts():
    message = AIMessage(
        "four",
        additional_kwargs={"reasoning_content": "2+2"},
        usage_metadata={"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
        response_metadata={"finish_reason": "length"},
    )
    model = LangChainChat("any", FakeMessagesListChatModel(responses=[message]))
    (reply,) = model.generate([ChatRequest((Message("user", "2+2?"),), 7)])
    assert (reply.text, reply.thinking, reply.tokens_in, reply.tokens_out) == ("four", "2+2", 5, 2)
    assert reply.truncated


class Sampled(FakeMessagesListChatModel):
    top_p: float | None = None
    seen: ClassVar[list] = []

    def _generate(self, *args, **kwargs):
        self.seen.append(self.top_p)
        return super()._generate(*args, **kwargs)


def test_a_model_of_ones_own_is_asked_for_the_sampling_that_it_has_and_refused_for_other():
    model = object_model(CHAT_MODELS, Sampled(responses=[AIMessage("four")]))
    asked = ChatRequest((Message("user", "2+2?"),), 7)
    model.generate([asked, replace(asked, top_p=0.5)])
    assert Sampled.seen == [None, 0.5]
    with pytest.raises(ModelError, match=r"takes no top_k; leave answer\.top_k at null"):
        model.generate([replace(asked, top_k=5)])
