from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from rag_lab.models.protocols import ChatRequest, Message
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
