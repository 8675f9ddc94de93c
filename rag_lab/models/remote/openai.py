"""Any OpenAI-compatible server (vLLM, llama.cpp, TGI, OpenAI itself) through langchain-openai."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rag_lab.memory.paces import Rates
from rag_lab.models.prices import own_prices
from rag_lab.models.protocols import SAMPLING, ChatReply, ChatRequest
from rag_lab.models.remote.http_bounds import CHAT_BYTES, HttpBounds
from rag_lab.models.remote.langchain_chat import LangChainChat
from rag_lab.models.remote.openai_server import OpenAIServer
from rag_lab.models.remote.reply_shapes import check_completion
from rag_lab.models.remote.requests import RetryPolicy
from rag_lab.models.remote.thinking.openai_efforts import Efforts, efforts_of
from rag_lab.models.remote.thinking.thinking_steps import ThinkingSteps
from rag_lab.models.requirements import require_package

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage

# Models whose template has a switch, and thinks until it is told not to, or only then (vLLM, "Reasoning outputs").
_SWITCHED = re.compile(r"qwen3|glm-?4|deepseek-v3|granite|holo2|gemma-?4|smollm3|hunyuan|nemotron")


class OpenAIChat(LangChainChat):
    """A model of an OpenAI-compatible server. JSON schemas go out as `response_format`."""

    constrains_json = True
    provider = "openai"

    def __init__(
        self,
        name: str,
        *,
        base_url: str = "",
        answers_as: str = "",
        context: int = 32_768,
        concurrency: int = 4,
        max_attempts: int = 5,
        timeout_s: float = 120.0,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
    ) -> None:
        retry = RetryPolicy(max_attempts, rates=Rates(requests_per_minute, tokens_per_minute))
        super().__init__(name, context_tokens=context, concurrency=concurrency, retry=retry)
        self.server = OpenAIServer(base_url)
        self.answers_as = answers_as or name
        self.timeout_s = timeout_s
        self._takes_budgets = True  # until it refuses them
        self._steps = ThinkingSteps()

    @property
    def priced(self) -> bool:
        """OpenAI's own service, and a server whose model has a price in the user's table."""
        return self.server.is_official or self.name in own_prices()

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name and address; never the key."""
        return {**super().identity(), "base_url": self.server.address}

    def problem(self, within_s: float) -> str:
        """Return why it cannot answer now, in one sentence, or ''; see `OpenAIServer.problem`."""
        return self.server.problem(within_s)

    def build(self) -> BaseChatModel:
        """Return the client.

        Raises:
            ModelError: if the package is missing, or the key of a server that is not on loopback.
        """
        require_package("langchain_openai", "langchain-openai")
        from openai import DefaultHttpxClient

        from rag_lab.models.remote.openai_reasoning import ReasoningChatOpenAI

        bounds = HttpBounds(self.timeout_s, CHAT_BYTES, check_completion)
        client: BaseChatModel = ReasoningChatOpenAI(
            model=self.name,
            api_key=self.server.key(),
            base_url=self.server.address,
            timeout=self.timeout_s,
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
