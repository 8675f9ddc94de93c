"""Any chat model, embeddings or cross-encoder of LangChain's, as ours. Remote chat providers build on its chat model.

A chat model is asked with bounded concurrency, our retries, bounds and costs.
"""

from __future__ import annotations

import base64
import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar

from rag_lab._kit.digest import source_digest
from rag_lab._kit.machine import timed
from rag_lab._kit.registry import Kind, Module
from rag_lab.errors import ConfigError, ModelError
from rag_lab.models import prices, protocols, truncation
from rag_lab.models.providers import CHAT_MODELS, EMBEDDERS
from rag_lab.models.remote import http, replies
from rag_lab.models.remote.retries import CallFailed, RemoteModel, in_parallel
from rag_lab.redaction import hide_known, holds_secret, names_secret, one_line

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage


_SIZES = frozenset({"mini", "nano", "lite", "small", "large", "turbo", "flash", "pro", "max"})
_CUT_OFF = {"length", "max_tokens", "model_length"}
_ACCIDENTS = {"tool_calls", "function_call", "malformed_function_call", "unexpected_tool_call", "error", "other"}
_REFUSED = {"safety", "content_filter", "blocklist", "prohibited_content", "recitation", "spii"}
# No provider says how many tokens an effort or a level takes. These are what Google's OpenAI interface turns low,
# medium and high into, with 128 left for `minimal`, which "matches no thinking for most queries".
TOKENS_OF = {"none": 0, "minimal": 128, "low": 1024, "medium": 8192, "high": 24_576}
USUAL_LEVELS = ("low", "medium", "high")
_LOG = logging.getLogger(__name__)
_CONTEXT_TOKENS = 32_768  # where nobody says
_REASON_CHARS = 600  # why a model was given up holds the reason of its last failure


def highest_within(levels: Sequence[str], tokens: int) -> str:
    """Return the highest of `levels`, the least first, that fits so many tokens of thinking; the least if none does."""
    fitting = [level for level in levels if TOKENS_OF[level] <= tokens]
    return fitting[-1] if fitting else levels[0]


def is_another(asked: str, told: str) -> bool:
    """Tell whether a server answered as clearly another model than `asked`, with folders and versions aside."""
    if not told or re.compile(r"[-:]latest$").search(asked):
        return False
    names = [name.casefold().rpartition("/")[2].removesuffix(".gguf") for name in (asked, told)]
    one, other = (re.split(r"[\W_]+", name) for name in sorted(names, key=len))
    return "".join(one) not in "".join(other) or bool(({*other} ^ {*one}) & _SIZES)


def to_langchain_messages(messages: Sequence[protocols.Message]) -> list[BaseMessage]:
    """Return LangChain's messages."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    kinds = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    written: list[BaseMessage] = []
    for message in messages:
        urls = [f"data:image/png;base64,{base64.b64encode(image).decode()}" for image in message.images]
        images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        content: Any = [{"type": "text", "text": message.content}, *images] if images else message.content
        written.append(kinds[message.role](content=content))
    return written


def from_langchain_message(message: AIMessage) -> protocols.ChatReply:
    """Return the text, thinking and token counts of LangChain's reply; `error` where there is neither text nor cut."""
    usage, metadata = message.usage_metadata, message.response_metadata
    blocked = (metadata.get("prompt_feedback") or {}).get("block_reason")
    ended = metadata.get("finish_reason") or metadata.get("done_reason") or blocked or ""
    reason = str(ended).rpartition(".")[2].lower()
    text, inline = protocols.split_thinking(message.text)
    thought = message.additional_kwargs.get("reasoning_content")  # of OpenAI-compatible servers; others have blocks
    if not isinstance(thought, str) or not thought:
        blocks: list[Any] = message.content if isinstance(message.content, list) else []
        parts = [
            str(block.get("thinking") or block.get("reasoning") or "")
            for block in blocks
            if isinstance(block, dict) and block.get("type") in ("thinking", "reasoning")
        ]
        thought = "\n".join(filter(None, parts))
    thinking = thought.strip() or inline
    error, transient = "", False
    if not text and (tools := [*message.tool_calls, *message.invalid_tool_calls]):
        error = f"The model called a tool ({tools[0].get('name')}) that nobody offered it, and wrote no reply."
        transient = True
    elif not text and (reason in _REFUSED or not (thinking or reason in _CUT_OFF)):
        error = f"The model returned no text (finish reason: {reason or 'none given'})."
        transient = not reason or reason in _ACCIDENTS  # a model that has ended says so
    return protocols.ChatReply(
        text=text,
        thinking=thinking,
        tokens_in=usage["input_tokens"] if usage else 0,
        tokens_out=usage["output_tokens"] if usage else 0,
        thinking_tokens=usage.get("output_token_details", {}).get("reasoning", 0) if usage else 0,
        truncated_tokens=int(metadata.get("unread_tokens", 0)),  # where a provider of ours knows
        truncated=reason in _CUT_OFF,
        error=error,
        transient=transient,
    )


class LangChainChat(RemoteModel):
    """Wraps a LangChain chat model whose own retries are off. `name` goes into the identity and finds the price."""

    constrains_json = False
    provider = "langchain"
    takes: tuple[str, ...] = protocols.SAMPLING  # settings of sampling that it can be asked for, beside temperature
    streaming: Mapping[str, Any] = {}  # what its client takes to stream, beside the options of a call
    least_thinking_tokens = 0  # that it cannot do without: room for them is left whatever is asked for

    def __init__(self, name: str, model: BaseChatModel | None = None, **options: Any) -> None:
        super().__init__(name, **options)
        if model is not None:
            self._client = model
        self.context_tokens = self.options.context or _CONTEXT_TOKENS
        self.answers_as = self.options.answers_as
        self._told_of_guess = False

    def identity(self) -> Mapping[str, Any]:
        """Return provider and name, what it thinks at the least, and what else a provider adds; never the key."""
        least = self.least_thinking_tokens
        return {**super().identity(), **({"least_thinking_tokens": least} if least else {})}

    def generate(self, requests: Sequence[protocols.ChatRequest]) -> list[protocols.ChatReply]:
        """Return one reply for each request, in order, at most `concurrency` at a time."""
        wanted = [protocols.with_least_thinking(self, request) for request in requests]
        if requests:
            _ = self._client, self._breaker  # a missing key is one error, before any thread starts
            self.check(wanted)
        return in_parallel(self.reply_to, wanted, self.concurrency)

    def check(self, requests: Sequence[protocols.ChatRequest]) -> None:
        """Refuse settings that it does not take, before anything is sent. Providers add to it."""
        for name in protocols.SAMPLING:
            if name not in self.takes and any(name in request.sampling for request in requests):
                raise ModelError(f"{self!r} takes no {name}; leave answer.{name} at null.")

    def count_tokens(self, text: str) -> int:
        """Return an upper estimate: asking the provider would cost a call each time."""
        return truncation.estimated_tokens(text)

    def call_options(self, request: protocols.ChatRequest) -> dict[str, Any]:
        """Return what `invoke` gets for this request. Providers override it."""
        return {"max_tokens": request.most_tokens_out, "temperature": request.temperature, **request.sampling}

    def invoke(self, messages: list[BaseMessage], request: protocols.ChatRequest) -> AIMessage:
        """Return the model's reply to this request. Providers override it where options are not enough."""
        return self.ask_client(messages, self.call_options(request), whole=request.thinking)

    def ask_client(self, messages: list[BaseMessage], options: Mapping[str, Any], *, whole: bool = False) -> AIMessage:
        """Return the reply; unless it is asked for as a `whole`, who listens gets the text so far with each piece."""
        listener = None if whole else protocols.LISTENER.get()
        if listener is None:
            message: AIMessage = self._client.invoke(messages, **options)
            return message
        try:
            pieces = self._client.stream(messages, **{**options, **self.streaming})
            message = next(pieces)
            for piece in pieces:
                message = message + piece
                listener(hide_known(message.text))
            if not {"finish_reason", "done_reason"} & message.response_metadata.keys():
                raise http.BadReply("the server's reply ends in the middle")
            return message
        except BaseException:
            protocols.LISTENER.set(None)  # another attempt is asked for as a whole
            raise

    def reply_to(self, request: protocols.ChatRequest) -> protocols.ChatReply:
        """Return the reply to one request, by one call. Providers that need more calls for it override it."""
        start = time.perf_counter()
        messages, most = (
            to_langchain_messages(request.messages),
            truncation.request_tokens(request) + request.most_tokens_out,
        )
        try:
            message = self.retry.call(repr(self), lambda: self.invoke(messages, request), self._breaker, most)
        except CallFailed as error:
            seconds = time.perf_counter() - start if error.asked else 0.0
            reason = one_line(str(error), _REASON_CHARS)
            return protocols.ChatReply(error=reason, transient=error.transient, asked=error.asked, seconds=seconds)
        reply = from_langchain_message(message)
        told = str(message.response_metadata.get("model_name") or "")
        if self.answers_as and is_another(self.answers_as, told):
            another = (
                f"The server answered as {told}, and {self.answers_as} was asked for; name the model as the server "
                f"does, or where the two are the same, add the option answers_as={told}."
            )
            reply = replace(reply, text="", thinking="", error=another, transient=True)
        # a gateway may repeat what it was sent: without the secrets that this process knows
        text, thinking = hide_known(reply.text), hide_known(reply.thinking)
        reply = replace(reply, text=text, thinking=thinking, error=one_line(reply.error, _REASON_CHARS))
        reply, guessed = replies.counted(request, reply)
        if guessed and not self._told_of_guess:
            self._told_of_guess = True
            _LOG.warning("%r: %s; tokens and costs are estimated", self, guessed)
        reply = replies.bounded(request, reply)
        cost = prices.cost_usd(self.provider, self.name, reply.tokens_in, reply.tokens_out) if self.priced else 0.0
        return replace(reply, seconds=time.perf_counter() - start, cost_usd=cost)


_TIMEOUT_S = 300.0  # of one attempt: the first one may load weights
_LENGTHS = ("max_tokens", "max_output_tokens", "num_predict", "max_new_tokens")
_CHANGE_NOTHING = {"cache", "callbacks", "verbose", "tags", "metadata", "custom_get_token_ids", "profile"}
_DEEPEST = 2  # objects within objects: what is deeper is known by its class


def adapted(kind: Kind, module: Module, what: str) -> Any:
    """Return LangChain's object as a chat model, or with the methods of an embedder or a scorer of pairs."""
    from langchain_core.cross_encoders import BaseCrossEncoder
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    due = BaseChatModel if kind is CHAT_MODELS else Embeddings if kind is EMBEDDERS else BaseCrossEncoder
    if not isinstance(module.value, due):
        raise ConfigError(f"The {what} is a {type(module.value).__name__} where LangChain's {due.__name__} is due.")
    return LangChainCustomChat(module) if kind is CHAT_MODELS else _Adapted(module.value)


class LangChainCustomChat(LangChainChat):
    """A chat model of LangChain's that somebody made; temperature, seed and length left open are the request's."""

    def __init__(self, module: Module) -> None:
        known = module.value._get_ls_params()
        self.provider = str(known.get("ls_provider") or "langchain")
        self._has_key = bool(module.value.lc_secrets)
        self._identity = {**described(module.value), "source": module.source}
        name = str(known.get("ls_model_name") or type(module.value).__name__)
        super().__init__(name, module.value, concurrency=4 if self._has_key else 1)  # what runs here may allow no more
        self.takes = tuple(field for field in protocols.SAMPLING if field in type(module.value).model_fields)

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, what it was made with, and the digest of its source; never a key."""
        return {**super().identity(), **self._identity}

    @property
    def priced(self) -> bool:  # type: ignore[override]
        """Whether it needs a key, or has a price: what runs on this machine costs nothing."""
        return self._has_key or prices.price(self.provider, self.name) is not None

    def invoke(self, messages: list[BaseMessage], request: protocols.ChatRequest) -> AIMessage:
        """Ask a copy with the request's settings."""
        model = self._client
        length = next((field for field in _LENGTHS if field in type(model).model_fields), "")
        wanted = {"temperature": request.temperature, "seed": request.seed, length: request.most_tokens_out}
        fields = {
            field: value
            for field, value in (wanted | request.sampling).items()
            if field in type(model).model_fields and field not in model.model_fields_set
        }
        message: AIMessage = timed(lambda: model.model_copy(update=fields).invoke(messages), _TIMEOUT_S)
        return message


@dataclass(frozen=True)
class _Adapted:
    """Embeddings or a cross-encoder of LangChain's, by our methods."""

    made: Any
    deterministic: ClassVar[bool] = False  # LangChain's objects do not say

    def identity(self) -> Mapping[str, Any]:
        return described(self.made)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return self.made.embed_documents(list(texts))

    def embed_queries(self, texts: Sequence[str]) -> Any:
        return [self.made.embed_query(text) for text in texts]

    def score(self, pairs: Sequence[tuple[str, str]]) -> Any:
        return self.made.score(list(pairs))


def described(made: Any) -> Mapping[str, Any]:
    """Return an object's class, with source and version, and the plain values it was made with, no secrets."""
    kind = type(made)
    try:
        version = metadata.version(kind.__module__.partition(".")[0].replace("_", "-"))
    except metadata.PackageNotFoundError:
        version = ""
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "code": source_digest(kind),
        "version": version,
        "made_with": _plain(made),
    }


def _plain(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON has it; of an object, its plain fields under its class's name."""
    if isinstance(value, str):
        return "" if holds_secret(value) else value
    if isinstance(value, int | float | None):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner, depth) for inner in value]
    is_mapping = isinstance(value, Mapping)
    fields: Mapping[Any, Any] = value if is_mapping else {}
    if not is_mapping and depth < _DEEPEST:
        if (names := getattr(type(value), "model_fields", None)) is not None:
            fields = {name: getattr(value, name) for name in names}
        else:
            public = getattr(value, "__dict__", {}).items()
            fields = {name: inner for name, inner in public if not name.startswith("_")}
    told = {
        str(name): _plain(inner, depth + 1)
        for name, inner in fields.items()
        if not names_secret(str(name)) and name not in _CHANGE_NOTHING
    }
    return told if is_mapping else {"class": type(value).__qualname__, **told}
