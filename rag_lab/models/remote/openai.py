"""Any OpenAI-compatible server (vLLM, llama.cpp, TGI, OpenAI itself) through langchain-openai.

The address is the option base_url or OPENAI_BASE_URL, the key OPENAI_API_KEY; a server on loopback needs none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from rag_lab.models.options import check_url, on_loopback
from rag_lab.models.prices import user_prices
from rag_lab.models.protocols import SAMPLING, ChatReply, ChatRequest, Message
from rag_lab.models.remote.http import CHAT_BYTES, Endpoint, HttpBounds, bearer
from rag_lab.models.remote.langchain_chat import LangChainChat
from rag_lab.models.remote.reply_shapes import check_completion
from rag_lab.models.remote.thinking_options import Efforts, efforts_of
from rag_lab.models.requirements import require_key, require_package

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage


_OFFICIAL = "https://api.openai.com/v1"
_KEY = "OPENAI_API_KEY"


@dataclass(frozen=True, slots=True)
class OpenAIServer:
    """The server at `base_url`, else at OPENAI_BASE_URL, else OpenAI's own."""

    base_url: str = ""

    @property
    def address(self) -> str:
        """Its address, checked to carry no secret."""
        address = self.base_url or os.environ.get("OPENAI_BASE_URL") or _OFFICIAL
        check_url(address, "OPENAI_BASE_URL")
        return address

    @property
    def is_official(self) -> bool:
        """Whether it is OpenAI's own."""
        return self.address == _OFFICIAL

    def key(self) -> str:
        """Return the key; the client insists on one, a server on loopback does not."""
        if on_loopback(self.address) and not os.environ.get(_KEY):
            return "none"
        return require_key([_KEY])

    def problem(self, within_s: float) -> str:
        """Return why it cannot be asked now, in one sentence, or ''; whether it has a model, it is not asked."""
        return Endpoint(self.address, within_s, bearer(self.key())).problem("/models")


Ask = Callable[[ChatRequest], ChatReply]


class ThinkingSteps:
    """Asks a server once, or again where its first reply shows that it is needed. Threads may share it."""

    def __init__(self) -> None:
        self._schema_hides_thought: bool | None = None  # None: not found out yet

    def reply(self, request: ChatRequest, ask: Ask) -> ChatReply:
        """Return the reply to `request`; `ask` makes one call."""
        if not request.thinking or request.json_schema is None:
            return _gone_on(request, ask(request), ask)
        if not self._schema_hides_thought:
            held = ask(request)
            if held.error or held.has_thought:
                self._schema_hides_thought = False
            if held.error or self._schema_hides_thought is False:
                return _gone_on(request, held, ask)
        free = ask(replace(request, json_schema=None))
        if self._schema_hides_thought is None:
            self._schema_hides_thought = bool(free.thinking)
            if not free.thinking:  # it does not think at all
                return held
        return free if free.error else _behind(request, free, ask)


def _gone_on(request: ChatRequest, reply: ChatReply, ask: Ask) -> ChatReply:
    """Return the reply, or where it ended in thought, what follows that thought once it is closed."""
    ended_in_thought = not reply.error and not reply.text and bool(reply.thinking)
    return _behind(request, reply, ask) if ended_in_thought else reply


def _behind(request: ChatRequest, first: ChatReply, ask: Ask) -> ChatReply:
    """Return what follows the thought of `first`, as far as the budget goes; `first` where the server refuses that."""
    thought = _within(first, request.thinking_tokens)
    closed = Message("assistant", f"<think>\n{thought}\n</think>\n\n")
    second = ask(replace(request, messages=(*request.messages, closed), thinking_tokens=0))
    if not request.thinking and not _has_text(second):  # llama.cpp does not go on behind a mark, but keeps a budget
        second = ask(replace(request, thinking_tokens=1))
    if not _has_text(second):
        return replace(first, transient=first.transient or second.transient)  # another attempt may go on
    return replace(
        second,
        thinking=thought,
        tokens_in=first.tokens_in,  # the prompt is one
        tokens_out=first.tokens_out + second.tokens_out,
        thinking_tokens=first.thinking_tokens or first.tokens_out,
        seconds=first.seconds + second.seconds,
    )


def _has_text(reply: ChatReply) -> bool:
    return bool(reply.text) and not reply.error


def _within(reply: ChatReply, budget: int) -> str:
    """Return a thought up to its budget, by the share of its tokens."""
    spent = reply.thinking_tokens or reply.tokens_out
    return reply.thinking if spent <= budget else reply.thinking[: len(reply.thinking) * budget // spent].rstrip()


# Models whose template has a switch, and thinks until it is told not to, or only then (vLLM, "Reasoning outputs").
_SWITCHED = re.compile(r"qwen3|glm-?4|deepseek-v3|granite|holo2|gemma-?4|smollm3|hunyuan|nemotron")


@cache
def _client_class() -> type[BaseChatModel]:
    """Return langchain-openai's chat model, keeping `reasoning_content`, which that library drops.

    Servers (vLLM, llama.cpp, DeepSeek's) give reasoning in a field of its own.
    """
    from langchain_core.messages import AIMessage
    from langchain_openai import ChatOpenAI

    class ReasoningChatOpenAI(ChatOpenAI):
        def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> Any:
            result = super()._create_chat_result(response, generation_info)
            content = response if isinstance(response, dict) else response.model_dump()
            for generation, choice in zip(result.generations, content.get("choices") or [], strict=False):
                reasoning = choice["message"].get("reasoning_content") or choice["message"].get("reasoning")
                if reasoning and isinstance(generation.message, AIMessage):
                    generation.message.additional_kwargs["reasoning_content"] = reasoning
            return result

    return ReasoningChatOpenAI


class OpenAIChat(LangChainChat):
    """A model of an OpenAI-compatible server. JSON schemas go out as `response_format`."""

    constrains_json = True
    provider = "openai"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.server = OpenAIServer(self.options.base_url)
        self.answers_as = self.options.answers_as or name
        self._takes_budgets = True  # until it refuses them
        self._steps = ThinkingSteps()

    @property
    def priced(self) -> bool:
        """OpenAI's own service, and a server whose model has a price in the user's table."""
        return self.server.is_official or self.name in user_prices()

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name and address; never the key."""
        return {**super().identity(), "base_url": self.server.address}

    def problem(self, within_s: float) -> str:
        """Return why it cannot answer now, in one sentence, or ''; see `OpenAIServer.problem`."""
        return self.server.problem(within_s)

    def build(self) -> BaseChatModel:
        """Return the client."""
        require_package("langchain_openai", "langchain-openai")
        from openai import DefaultHttpxClient

        bounds = HttpBounds(self.options.timeout_s, CHAT_BYTES, check_completion)
        client: BaseChatModel = _client_class()(
            model=self.name,
            api_key=self.server.key(),
            base_url=self.server.address,
            timeout=self.options.timeout_s,
            http_client=DefaultHttpxClient(event_hooks=bounds.hooks()),
            max_retries=0,
            use_responses_api=False,
        )
        return client

    @property
    def takes(self) -> tuple[str, ...]:  # type: ignore[override]
        """Of OpenAI's own service top_p alone, and no sampling at all while a model reasons."""
        return ("top_p",) if self.server.is_official else SAMPLING

    @property
    def least_thinking_tokens(self) -> int:
        """Of OpenAI's reasoning models, what the least effort takes; a server of one's own closes the thought."""
        return self._efforts.least_tokens if self.server.is_official else 0

    def call_options(self, request: ChatRequest, *, budgets: bool = True) -> dict[str, Any]:
        """Return sampling, length, thinking and the JSON schema as OpenAI or OpenAI-compatible servers name them.

        They go into the body as they are: the client would rename `max_tokens` to what only OpenAI knows, and would
        throw away a reply under a schema that was cut off. `budgets` of thinking are fields that not all servers know.
        """
        body: dict[str, Any] = {}
        if request.json_schema is not None:
            schema = {"name": "reply", "schema": dict(request.json_schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        more = (
            self._official(request)
            if self.server.is_official
            else self._compatible(request, budgets and self._takes_budgets)
        )
        return {"seed": request.seed, "extra_body": body | more}

    def invoke(self, messages: list[BaseMessage], request: ChatRequest) -> AIMessage:
        """Ask; a server that refuses the fields that not all servers know is asked without them from then on."""
        from openai import BadRequestError, UnprocessableEntityError

        try:
            return super().invoke(messages, request)
        except (BadRequestError, UnprocessableEntityError):
            if not self._takes_budgets or not request.thinking or self.server.is_official:
                raise
            message = self._client.invoke(messages, **self.call_options(request, budgets=False))
            self._takes_budgets = False  # what it refused was no fault of the request
            return message

    def reply_to(self, request: ChatRequest) -> ChatReply:
        """Return the reply to one request. A server that costs nothing may be asked twice: see `ThinkingSteps`."""
        ask = super().reply_to
        return ask(request) if self.priced else self._steps.reply(request, ask)

    def _official(self, request: ChatRequest) -> dict[str, Any]:
        effort = self._efforts.effort(request.thinking_tokens)
        body: dict[str, Any] = {"max_completion_tokens": request.max_tokens}
        if effort:
            body = {"max_completion_tokens": request.most_tokens_out, "reasoning_effort": effort}
        sampling = {"temperature": request.temperature, **request.sampling}
        return body | (sampling if self._efforts.takes_sampling(effort) else {})

    def _compatible(self, request: ChatRequest, budgets: bool) -> dict[str, Any]:
        body: dict[str, Any] = {"max_tokens": request.most_tokens_out}
        goes_on = request.messages[-1].role == "assistant"
        if goes_on:
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        if request.thinking and budgets:
            tokens = request.thinking_tokens
            body |= {"thinking_budget_tokens": tokens, "thinking_token_budget": tokens}  # llama.cpp's, vLLM's
        if goes_on or (request.thinking and budgets) or _SWITCHED.search(self.name.lower()):
            body["chat_template_kwargs"] = {"enable_thinking": request.thinking, "thinking": request.thinking}
        if request.temperature or not request.thinking:  # greedy thinking goes in circles: that of the card is better
            body["temperature"] = request.temperature
        return body | request.sampling

    @property
    def _efforts(self) -> Efforts:
        return efforts_of(self.name)
