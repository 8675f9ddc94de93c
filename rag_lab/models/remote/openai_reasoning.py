"""langchain-openai's chat model, keeping `reasoning_content`, which that library drops. Imported only when used."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI


class ReasoningChatOpenAI(ChatOpenAI):
    """ChatOpenAI for servers (vLLM, llama.cpp, DeepSeek's) that give reasoning in a field of its own."""

    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> ChatResult:
        result = super()._create_chat_result(response, generation_info)
        content = response if isinstance(response, dict) else response.model_dump()
        for generation, choice in zip(result.generations, content.get("choices") or [], strict=False):
            reasoning = choice["message"].get("reasoning_content") or choice["message"].get("reasoning")
            if reasoning and isinstance(generation.message, AIMessage):
                generation.message.additional_kwargs["reasoning_content"] = reasoning
        return result
