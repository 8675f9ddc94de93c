import pytest

from rag_lab.errors import ModelError
from rag_lab.models.base import ChatReply, ChatRequest, Message
from rag_lab.models.langchain_adapter import as_langchain
from rag_lab.models.langchain_chat import LangChainChat
from rag_lab.testing import ScriptedChat


def test_ours_as_langchains():
    model = ScriptedChat([ChatReply("four END", thinking="2+2", tokens_in=5, tokens_out=2, truncated=True)])
    message = as_langchain(model, max_tokens=12, seed=3).invoke(
        [("system", "Be brief."), ("human", "2+2?")], stop=["END"], temperature=0.5
    )
    assert message.text == "four "
    assert message.usage_metadata["total_tokens"] == 7
    assert message.response_metadata["finish_reason"] == "length"
    assert message.additional_kwargs["reasoning_content"] == "2+2"
    assert model.requests == [
        ChatRequest((Message("system", "Be brief."), Message("user", "2+2?")), max_tokens=12, temperature=0.5, seed=3)
    ]


def test_an_error_reply_is_an_exception_there():
    with pytest.raises(ModelError, match="too long"):
        as_langchain(ScriptedChat([ChatReply(error="too long")])).invoke("hello")


def test_there_and_back_again():
    inner = ScriptedChat([ChatReply("four", thinking="2+2", tokens_in=5, tokens_out=2)])
    (reply,) = LangChainChat("any", as_langchain(inner)).generate([ChatRequest((Message("user", "2+2?"),), 7)])
    assert (reply.text, reply.thinking, reply.tokens_in, reply.tokens_out) == ("four", "2+2", 5, 2)
    assert inner.requests[0].max_tokens == 7
