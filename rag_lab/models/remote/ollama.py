"""An Ollama server, what it has and can, and its chat models through langchain-ollama, by the server's own interface.

Its OpenAI interface knows neither the window nor the switch of thinking: prompts are cut at 4,096 tokens there, and
models that think do.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from pydantic import TypeAdapter
from pydantic_core import core_schema as shape

from rag_lab._kit.digest import whole_file
from rag_lab._kit.home import home_at_work
from rag_lab._kit.machine import timed
from rag_lab.errors import ModelError
from rag_lab.models import prices, requirements, truncation
from rag_lab.models.protocols import ChatRequest
from rag_lab.models.remote import http, replies
from rag_lab.models.remote.langchain_models import TOKENS_OF, USUAL_LEVELS, LangChainChat, highest_within
from rag_lab.models.remote.retries import RemoteModel, RemoteOptions

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.messages.ai import UsageMetadata


VARIABLE = "OLLAMA_HOST"
_HERE, _PORT = "127.0.0.1", 11434
_ANY = "0.0.0.0"  # noqa: S104 - what a server listens on is no address to call
_TIMEOUT_S = 10.0
CHECK_S = 2.0
_HOLDS_S = 60.0  # an answer on which weights a name stands for
_MAX_REPLY_BYTES = 16 * http.MIB  # a description lists a model's tensors
T = TypeVar("T")
_MISSING = "Ollama has no model {0!r}; run: rag-lab models pull ollama:{0}"


def _check_written(found: Mapping[str, Any]) -> None:
    if found.get("done_reason") == "load":
        raise http.BadReply("Ollama loaded the model and wrote no reply")


_MESSAGE = replies.object_of(
    {"role": replies.TEXT},
    {"content": replies.TEXT, "thinking": replies.TEXT, "tool_calls": shape.list_schema(replies.ANY)},
)
_check_chat = replies.check_of(
    replies.object_of(
        {"message": _MESSAGE, "done": shape.literal_schema([True])},
        {"done_reason": replies.TEXT, "prompt_eval_count": replies.COUNT, "eval_count": replies.COUNT},
    ),
    "reply of Ollama",
    _check_written,
)
check_ollama_embeddings = replies.check_of(
    replies.object_of(
        {"embeddings": shape.list_schema(replies.VECTOR, min_length=1)}, {"prompt_eval_count": replies.COUNT}
    ),
    "batch of embeddings",
    lambda found: replies.check_lengths(found["embeddings"]),
)
_check_description = replies.check_of(shape.dict_schema(shape.str_schema(), replies.ANY), "description of models")


@dataclass(frozen=True, slots=True)
class PulledModel:
    """A model that a server has; `size_bytes` on its disk."""

    name: str
    digest: str
    size_bytes: int
    parameters: str  # as the server tells it: 3.2B
    quantization: str


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What a server tells of a model; a context of 0 and no capabilities where it does not tell."""

    context_tokens: int
    capabilities: tuple[str, ...]  # completion, thinking, vision, embedding, ...


class NoAnswer(ModelError):  # noqa: N818
    """An Ollama server that does not answer, or not as one would."""


class OllamaServer:
    """The server at `base_url`, else at OLLAMA_HOST, else on this machine; its key, if any, is OLLAMA_API_KEY."""

    def __init__(self, base_url: str = "") -> None:
        given = base_url or os.environ.get(VARIABLE) or _HERE
        address = given if "://" in given else f"http://{given}"
        requirements.check_url(address, "The address of Ollama")
        parts = urlsplit(address)
        if parts.path.strip("/") == "v1":
            raise ModelError("Ollama's address ends in /v1, its OpenAI interface; give it without, or take openai:.")
        host = _HERE if parts.hostname == _ANY else str(parts.hostname)
        host = f"[{host}]" if ":" in host else host
        port = parts.port or (_PORT if "://" not in given else None)
        self.address = f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"

    def models(self) -> list[PulledModel]:
        """Return the models that it has, in order of their names."""
        found = [
            PulledModel(
                name=each.model or "",
                digest=(each.digest or "").removeprefix("sha256:"),
                size_bytes=int(each.size or 0),
                parameters=(each.details and each.details.parameter_size) or "",
                quantization=(each.details and each.details.quantization_level) or "",
            )
            for each in self._asked(lambda: self._client.list()).models
        ]
        return sorted(found, key=lambda model: model.name)

    def pulled(self, name: str) -> PulledModel:
        """Return the model of this name, whose tag is `latest` where it has none."""
        found = next((model for model in self.models() if model.name in (name, f"{name}:latest")), None)
        if found is None:
            raise ModelError(_MISSING.format(name))
        return found

    def described(self, name: str) -> ModelDescription:
        """Return what it tells of a model."""
        shown = self._asked(lambda: self._client.show(name), name)
        lengths = [value for key, value in (shown.modelinfo or {}).items() if key.endswith(".context_length")]
        context = next((value for value in lengths if isinstance(value, int)), 0)
        return ModelDescription(context, tuple(shown.capabilities or ()))

    def digest(self, name: str) -> str:
        """Return the digest of the weights that `name` stands for, asked once a minute; else the last one known."""
        return _digest(self.address, name, int(time.monotonic() / _HOLDS_S))

    @classmethod
    def server_problem(cls) -> str:
        """Return why the server that the environment names, else this machine's, cannot be asked, or ''."""
        try:
            return cls().problem()
        except ModelError as error:
            return str(error)

    def problem(self, name: str = "", within_s: float = CHECK_S) -> str:
        """Return why it cannot be asked, or has no such model, in one sentence; '' where it answers in time."""
        try:
            _ = self._client  # its library is imported before the time runs
            timed(lambda: self.pulled(name) if name else self.models(), within_s)
        except ModelError as error:
            return str(error)
        except TimeoutError as error:
            return f"Ollama at {self.address} {error}."
        return ""

    def pull(self, name: str) -> Iterator[tuple[str, int, int]]:
        """Download a model onto the server; yield what it does now, and the bytes done and due of that (0: unknown)."""
        library = requirements.require_package("ollama", "langchain-ollama")
        try:
            for step in library.Client(host=self.address).pull(name, stream=True):
                yield step.status or "", step.completed or 0, step.total or 0
        except Exception as error:
            raise self._error(error, name) from None
        _digest.cache_clear()

    @cached_property
    def _client(self) -> Any:
        library = requirements.require_package("ollama", "langchain-ollama")
        hooks = http.event_hooks(_TIMEOUT_S, _MAX_REPLY_BYTES, _check_description)
        return library.Client(host=self.address, event_hooks=hooks)

    def _asked(self, call: Callable[[], T], name: str = "") -> T:
        try:
            return call()
        except ModelError:
            raise
        except Exception as error:
            raise self._error(error, name) from None

    def _error(self, error: Exception, name: str) -> ModelError:
        if name and getattr(error, "status_code", 0) == 404:
            return ModelError(_MISSING.format(name))
        if isinstance(error, ConnectionError) or "Connect" in type(error).__name__:
            return NoAnswer(
                f"No Ollama answers at {self.address}; start it with `ollama serve`, or name its address in {VARIABLE}."
            )
        return NoAnswer(f"Ollama at {self.address}: {http.classify(error).sentence}.")


class OllamaModel(RemoteModel):
    """A model, of any kind, of an Ollama server."""

    provider = "ollama"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.server = OllamaServer(self.options.base_url)
        self.keep_alive: str | int | None = self.options.keep_alive or None  # `10m`, or seconds; None: the server's
        with suppress(ValueError):
            self.keep_alive = int(self.options.keep_alive)

    @property
    def priced(self) -> bool:  # type: ignore[override]
        """Whether the user's table has a price for it: nobody else asks money for one's own server."""
        return self.name in prices.user_prices()

    def identity(self) -> Mapping[str, Any]:
        """Return what every model of its kind says, and the weights' digest: elsewhere they are the same model."""
        return {**super().identity(), "weights": self.server.digest(self.name)}

    def problem(self, within_s: float) -> str:
        """Return why it cannot answer now, in one sentence, or ''; see `OllamaServer.problem`."""
        return self.server.problem(self.name, within_s)


@lru_cache
def _digest(address: str, name: str, minute: int) -> str:
    path, key = home_at_work() / "ollama_digests.json", f"{address} {name}"
    silent: NoAnswer | None = None
    try:
        digest = OllamaServer(address).pulled(name).digest
    except NoAnswer as error:
        silent = error
    try:  # after the server was asked, which may take seconds, in which others write
        known = TypeAdapter(dict[str, str]).validate_json(path.read_bytes())
    except (OSError, ValueError):
        known = {}
    if silent is not None:
        if key in known:
            return known[key]
        raise silent
    if known.get(key) != digest:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as partial:
            partial.write_text(json.dumps(known | {key: digest}, indent=1, sort_keys=True), encoding="utf-8")
    return digest


_FIELD = "reasoning_content"
_UNREAD = "unread_tokens"
_BESIDE_HALF = 8  # tokens of a prompt's beginning that a server keeps beside half a window


def _thinking(message: BaseMessage) -> str:
    return str(message.additional_kwargs.get(_FIELD) or "")


def _thought(usage: UsageMetadata) -> int:
    return usage.get("output_token_details", {}).get("reasoning", 0)


def _with_usage(message: AIMessage, read: int, written: int, thought: int) -> AIMessage:
    usage = {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "output_token_details": {"reasoning": thought},
    }
    return message.model_copy(update={"usage_metadata": usage})


class OllamaChat(OllamaModel, LangChainChat):
    """A model of an Ollama server, as `ollama list` has it, e.g. `qwen3:8b`; the server enforces JSON schemas.

    `context` is the window (`num_ctx`) of prompt and reply, of each call at a time (OLLAMA_NUM_PARALLEL).
    """

    constrains_json = True
    streaming: Mapping[str, Any] = {"stream": True}
    defaults = RemoteOptions(context=8192, concurrency=1, timeout_s=300.0)

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._levels = USUAL_LEVELS if name.rpartition("/")[2].startswith("gpt-oss") else ()  # none: a switch
        self.least_thinking_tokens = TOKENS_OF[self._levels[0]] if self._levels else 0

    def identity(self) -> Mapping[str, Any]:
        """Return what every model of Ollama says of itself, and the window."""
        return {**super().identity(), "context_tokens": self.context_tokens}

    @cached_property
    def _client(self) -> Any:
        library = requirements.require_package("langchain_ollama", "langchain-ollama")
        own_tokens = self._described.context_tokens
        if 0 < own_tokens < self.context_tokens:
            raise ModelError(
                f"{self.name} reads at most {own_tokens:,} tokens, and a window of {self.context_tokens:,} was asked "
                f"for; write ollama:{self.name}?context={own_tokens}."
            )
        hooks = http.event_hooks(self.options.timeout_s, http.CHAT_BYTES, _check_chat)
        return library.ChatOllama(
            model=self.name, base_url=self.server.address, sync_client_kwargs={"event_hooks": hooks}
        )

    def check(self, requests: Sequence[ChatRequest]) -> None:
        """Refuse images for a model that sees none, too."""
        super().check(requests)
        shows = any(message.images for request in requests for message in request.messages)
        can = self._described.capabilities if shows else ()
        if can and "vision" not in can:
            raise ModelError(f"{self.name} sees no images; take a model of Ollama that does, such as gemma3:4b.")

    def invoke(self, messages: list[BaseMessage], request: ChatRequest) -> AIMessage:
        """Ask, and end thinking at its budget: a reply that is not over, or too long, is asked for alone behind its
        thought.
        """
        from langchain_core.messages import AIMessage

        if not request.thinking:
            return self._ask(messages, request, request.max_tokens, think=False)
        think = highest_within(self._levels, request.thinking_tokens) if self._levels else True
        first = self._ask(messages, request, request.thinking_tokens, think=think)
        usage = first.usage_metadata
        reply_tokens = usage["output_tokens"] - _thought(usage) if usage else 0
        if first.response_metadata.get("done_reason") != "length" and reply_tokens <= request.max_tokens:
            return first
        # the thought is the beginning of the assistant's turn; a template closes it there
        turn = AIMessage("", additional_kwargs={_FIELD: _thinking(first)})
        behind = self._levels[0] if self._levels else False
        reply = self._ask([*messages, turn], request, request.max_tokens, think=behind)
        # one reply of both calls: the thought of both and all that was written; the prompt is one
        thinking = "\n".join(filter(None, (_thinking(first), _thinking(reply))))
        unread = {_UNREAD: max(each.response_metadata.get(_UNREAD, 0) for each in (first, reply))}
        found = reply.model_copy(
            update={
                "additional_kwargs": reply.additional_kwargs | {_FIELD: thinking},
                "response_metadata": reply.response_metadata | unread,
            }
        )
        before, after = first.usage_metadata, reply.usage_metadata
        if before is None or after is None:
            return found.model_copy(update={"usage_metadata": None})
        written = before["output_tokens"] + after["output_tokens"]
        return _with_usage(found, before["input_tokens"], written, _thought(before) + _thought(after))

    @cached_property
    def _described(self) -> ModelDescription:
        try:
            return self.server.described(self.name)
        except NoAnswer:  # each call will say so, and try again
            return ModelDescription(0, ())

    def _ask(
        self, messages: list[BaseMessage], request: ChatRequest, most_tokens: int, *, think: bool | str
    ) -> AIMessage:
        """Return the reply of one call with its tokens of thought, by bytes, and those of the prompt without effect."""
        settings = {
            "num_ctx": self.context_tokens,
            "num_predict": most_tokens,
            "temperature": request.temperature,
            "seed": request.seed,
            **request.sampling,
        }
        options = {
            "stream": False,
            "options": settings,
            "format": dict(request.json_schema) if request.json_schema is not None else None,
            "keep_alive": self.keep_alive,
            "reasoning": True,  # keep what it thinks, also where it was asked not to
            "think": think,
        }
        message = self.ask_client(messages, options)
        most_sent = truncation.request_tokens(request)
        most_sent += sum(truncation.estimated_tokens(_thinking(each)) for each in messages)
        thinking, usage = _thinking(message), message.usage_metadata
        if usage is None:
            return message
        n_bytes = len(thinking.encode()), len(message.text.encode())
        share = n_bytes[0] / sum(n_bytes) if thinking else 0.0
        read, written = usage["input_tokens"], usage["output_tokens"]
        # of a prompt that is longer than its window a server reads half a window (ollama#17427), an older one a whole;
        # and as it writes on beyond the window, it lets go of what it has read: so many tokens are missing at least
        window = self.context_tokens
        unread = max(0, read + written - window, int(most_sent > window <= read))
        if most_sent > window and 0 <= read - window // 2 <= _BESIDE_HALF:
            unread = window + 1 - read
        found = message.model_copy(update={"response_metadata": message.response_metadata | {_UNREAD: unread}})
        return _with_usage(found, read, written, round(share * written))
