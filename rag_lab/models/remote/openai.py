"""Any OpenAI-compatible server (vLLM, llama.cpp, TGI, OpenAI itself) through langchain-openai.

The address is the option base_url or OPENAI_BASE_URL, the key OPENAI_API_KEY; a server on loopback needs none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from rag_lab.models import prices, requirements
from rag_lab.models.protocols import SAMPLING, ChatReply, ChatRequest, Message
from rag_lab.models.remote import http, replies
from rag_lab.models.remote.langchain_models import TOKENS_OF, USUAL_LEVELS, LangChainChat, highest_within
from rag_lab.models.remote.retries import RemoteModel

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage


_OFFICIAL = "https://api.openai.com/v1"
_KEY = "OPENAI_API_KEY"
Ask = Callable[[ChatRequest], ChatReply]
# Models whose template has a switch, and thinks until it is told not to, or only then (vLLM, "Reasoning outputs").
_SWITCHED = re.compile(r"qwen3|glm-?4|deepseek-v3|granite|holo2|gemma-?4|smollm3|hunyuan|nemotron")


class OpenAIModel(RemoteModel):
    """A model, of any kind, of the server at `base_url`, else at OPENAI_BASE_URL, else of OpenAI's own."""

    provider = "openai"

    @property
    def address(self) -> str:
        """Its server's address, checked to carry no secret."""
        address = self.options.base_url or os.environ.get("OPENAI_BASE_URL") or _OFFICIAL
        requirements.check_url(address, "OPENAI_BASE_URL")
        return address

    @property
    def is_official(self) -> bool:
        """Whether it is of OpenAI's own service."""
        return self.address == _OFFICIAL

    @property
    def priced(self) -> bool:  # type: ignore[override]
        """OpenAI's own service, and a server whose model has a price in the user's table."""
        return self.is_official or self.name in prices.user_prices()

    def identity(self) -> Mapping[str, Any]:
        """Return what every model of its kind says of itself, and the address; never the key."""
        return {**super().identity(), "base_url": self.address}

    def key(self) -> str:
        """Return the key; the client insists on one, a server on loopback does not."""
        if requirements.on_loopback(self.address) and not os.environ.get(_KEY):
            return "none"
        return requirements.require_key([_KEY])

    def problem(self, within_s: float) -> str:
        """Return why its server cannot be asked now, in one sentence, or ''; whether it has the model, is not asked."""
        return http.Endpoint(self.address, within_s, http.bearer(self.key())).problem("/models")


@cache
def _efforts(name: str) -> tuple[tuple[str, ...], bool]:
    """Return the efforts that OpenAI's model of this name takes, the least first, and whether it samples without."""
    from langchain_openai import ChatOpenAI

    profile = ChatOpenAI(model=re.compile(r"-\d{4}-\d{2}-\d{2}$").sub("", name), api_key=lambda: "none").profile or {}
    if not profile.get("reasoning_output"):
        return (), True
    levels = profile.get("reasoning_effort_levels", USUAL_LEVELS)
    return tuple(level for level in TOKENS_OF if level in levels), bool(profile.get("temperature"))


def _behind(request: ChatRequest, first: ChatReply, ask: Ask) -> ChatReply:
    """Return what follows the thought of `first`, as far as the budget goes; `first` where the server refuses that."""
    spent, budget = first.thinking_tokens or first.tokens_out, request.thinking_tokens
    thought = first.thinking
    if spent > budget:
        thought = thought[: len(thought) * budget // spent].rstrip()
    closed = Message("assistant", f"<think>\n{thought}\n</think>\n\n")
    second = ask(replace(request, messages=(*request.messages, closed), thinking_tokens=0))
    if not request.thinking and (second.error or not second.text):
        second = ask(replace(request, thinking_tokens=1))  # llama.cpp does not go on behind a mark, but keeps a budget
    if second.error or not second.text:
        return replace(first, transient=first.transient or second.transient)  # another attempt may go on
    return replace(
        second,
        thinking=thought,
        tokens_in=first.tokens_in,  # the prompt is one
        tokens_out=first.tokens_out + second.tokens_out,
        thinking_tokens=first.thinking_tokens or first.tokens_out,
        seconds=first.seconds + second.seconds,
    )


@cache
def _client_class() -> type[BaseChatModel]:
    """Return langchain-openai's chat model, keeping `reasoning_content`, which that library drops."""
    from langchain_core.messages import AIMessage
    from langchain_openai import ChatOpenAI

    class ReasoningChatOpenAI(ChatOpenAI):
        def _convert_chunk_to_generation_chunk(self, chunk: Any, *more: Any) -> Any:
            found = super()._convert_chunk_to_generation_chunk(chunk, *more)
            delta = (chunk.get("choices") or [{}])[0].get("delta") or {}
            if found and (reasoning := delta.get("reasoning_content") or delta.get("reasoning")):
                found.message.additional_kwargs["reasoning_content"] = reasoning
            return found

        def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> Any:
            result = super()._create_chat_result(response, generation_info)
            content = response if isinstance(response, dict) else response.model_dump()
            for generation, choice in zip(result.generations, content.get("choices") or [], strict=False):
                reasoning = choice["message"].get("reasoning_content") or choice["message"].get("reasoning")
                if reasoning and isinstance(generation.message, AIMessage):
                    generation.message.additional_kwargs["reasoning_content"] = reasoning
            return result

    return ReasoningChatOpenAI


class OpenAIChat(OpenAIModel, LangChainChat):
    """A model of an OpenAI-compatible server. JSON schemas go out as `response_format`."""

    constrains_json = True
    streaming: Mapping[str, Any] = {"stream_usage": True}

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.answers_as = self.options.answers_as or name
        self._takes_budgets = True  # until it refuses them
        self._schema_hides_thought: bool | None = None  # None: not found out yet

    @cached_property
    def _client(self) -> Any:
        requirements.require_package("langchain_openai", "langchain-openai")
        from openai import DefaultHttpxClient

        hooks = http.event_hooks(self.options.timeout_s, http.CHAT_BYTES, replies.check_completion)
        return _client_class()(
            model=self.name,
            api_key=self.key(),
            base_url=self.address,
            timeout=self.options.timeout_s,
            http_client=DefaultHttpxClient(event_hooks=hooks),
            max_retries=0,
            use_responses_api=False,
        )

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Of OpenAI's own service top_p alone, and no sampling at all while a model reasons."""
        return ("top_p",) if self.is_official else SAMPLING

    @property
    def least_thinking_tokens(self) -> int:  # type: ignore[override]
        """Of OpenAI's reasoning models, what the least effort takes; a server of one's own closes the thought."""
        levels = _efforts(self.name)[0] if self.is_official else ()
        return TOKENS_OF[levels[0]] if levels else 0

    def call_options(self, request: ChatRequest, *, budgets: bool = True) -> dict[str, Any]:
        """Return sampling, length, thinking and the JSON schema as OpenAI or OpenAI-compatible servers name them.

        They go into the body as they are: the client would rename `max_tokens` to what only OpenAI knows, and would
        throw away a reply under a schema that was cut off. `budgets` of thinking are fields that not all servers know.
        """
        body: dict[str, Any]
        if self.is_official:
            levels, samples = _efforts(self.name)
            effort = highest_within(levels, request.thinking_tokens) if levels else ""
            body = {"max_completion_tokens": request.max_tokens}
            if effort:
                body = {"max_completion_tokens": request.most_tokens_out, "reasoning_effort": effort}
            if samples and effort in ("", "none"):
                body |= {"temperature": request.temperature, **request.sampling}
        else:
            body = {"max_tokens": request.most_tokens_out}
            has_budget = request.thinking and budgets and self._takes_budgets
            goes_on = request.messages[-1].role == "assistant"
            if goes_on:
                body |= {"continue_final_message": True, "add_generation_prompt": False}
            if has_budget:
                tokens = request.thinking_tokens
                body |= {"thinking_budget_tokens": tokens, "thinking_token_budget": tokens}  # llama.cpp's, vLLM's
            if goes_on or has_budget or _SWITCHED.search(self.name.lower()):
                body["chat_template_kwargs"] = {"enable_thinking": request.thinking, "thinking": request.thinking}
            if request.temperature or not request.thinking:  # greedy thinking goes in circles: the card's is better
                body["temperature"] = request.temperature
            body |= request.sampling
        if request.json_schema is not None:
            schema = {"name": "reply", "schema": dict(request.json_schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return {"seed": request.seed, "extra_body": body}

    def invoke(self, messages: list[BaseMessage], request: ChatRequest) -> AIMessage:
        """Ask; a server that refuses the fields that not all servers know is asked without them from then on."""
        from openai import BadRequestError, UnprocessableEntityError

        try:
            return super().invoke(messages, request)
        except (BadRequestError, UnprocessableEntityError):
            if not self._takes_budgets or not request.thinking or self.is_official:
                raise
            message: AIMessage = self._client.invoke(messages, **self.call_options(request, budgets=False))
            self._takes_budgets = False  # what it refused was no fault of the request
            return message

    def reply_to(self, request: ChatRequest) -> ChatReply:
        """Return the reply to one request; a server that costs nothing is asked again if its first reply needs it."""
        ask = super().reply_to
        if self.priced:
            return ask(request)
        first: ChatReply | None = None
        is_held_to_schema = request.thinking and request.json_schema is not None
        if not (is_held_to_schema and self._schema_hides_thought):
            first = ask(request)
            if is_held_to_schema and (first.error or first.has_thought):
                self._schema_hides_thought = False
            if not is_held_to_schema or first.error or self._schema_hides_thought is False:
                ended_in_thought = not first.error and not first.text and bool(first.thinking)
                return _behind(request, first, ask) if ended_in_thought else first
        free = ask(replace(request, json_schema=None))
        if first is not None and self._schema_hides_thought is None:
            self._schema_hides_thought = bool(free.thinking)
            if not free.thinking:  # it does not think at all
                return first
        return free if free.error else _behind(request, free, ask)
