from dataclasses import replace
from typing import ClassVar

import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from rag_lab.errors import ModelError
from rag_lab.models.custom_models import object_model
from rag_lab.models.protocols import ChatRequest, Message
from rag_lab.models.providers import CHAT_MODELS
from rag_lab.models.remote.langchain_models import LangChainChat, is_another


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


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06"),
        ("gemma-3", "/weights/Gemma-3.gguf"),
        ("Qwen/Qwen3-8B", "qwen3-8b"),
        ("llama3.2:3b", "Llama-3.2-3B-Instruct"),
        ("chatgpt-4o-latest", "gpt-5"),
        ("llama3:latest", "llama3"),
        ("anything", ""),
    ],
)
def test_a_name_with_more_or_less_around_it_is_the_same_model(asked, told):
    assert not is_another(asked, told)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("qwen3-8b", "llama3"),
        ("gpt-4o", "gpt-4o-mini"),
        ("gpt-5-mini", "gpt-5"),
        ("gemini-2.5-pro", "gemini-2.5-flash"),
    ],
)
def test_another_family_or_size_is_another_model(asked, told):
    assert is_another(asked, told)
