"""llama.cpp in this process (xllamacpp): the default chat model, on any CPU, with JSON-constrained output."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.models.local.gguf_conversion import q8_0_copy
from rag_lab.models.local.gguf_tokenizer import gguf_tokenizer
from rag_lab.models.local.llamacpp_server import LlamaCppServer, ServerError
from rag_lab.models.protocols import ChatReply, ChatRequest, Message
from rag_lab.models.requirements import missing_package
from rag_lab.models.thinking import split_thinking
from rag_lab.models.weights import Source, find

_PACKAGED = "smollm2"
_TEXTS_COUNTED = 65_536  # remembered: many questions find the same passages


class LlamaCppChat:
    """A GGUF model: the packaged `smollm2`, or the path of a .gguf file. Calls from several threads take turns.

    A reply depends on its request alone, not on the requests before it: see `LlamaCppServer`. With `max_tokens` no
    reply is longer, whatever is asked for: a small model that judges runs on until it is stopped.
    """

    constrains_json = True
    concurrency = 1

    def __init__(
        self, name: str, *, context: int = 4096, max_tokens: int | None = None, threads: int | None = None
    ) -> None:
        self.name = name
        self.context_tokens = context
        self.max_tokens = max_tokens
        self.threads = threads

    def __repr__(self) -> str:
        return f"LlamaCppChat({self.name!r}, context={self.context_tokens})"

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, digest of the weights, how they are stored, context size and library version."""
        problem = missing_package("xllamacpp", "xllamacpp")
        if problem:
            raise ModelError(problem)
        return {
            "provider": "llamacpp",
            "name": self._source.name,
            "weights": self._source.digest(),
            "stored_as": "q8_0" if self.name == _PACKAGED else "as given",
            "context_tokens": self.context_tokens,
            **({} if self.max_tokens is None else {"max_tokens": self.max_tokens}),
            "library": f"xllamacpp {metadata.version('xllamacpp')}",
        }

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order; requests that share earlier messages are answered together."""
        replies: dict[int, ChatReply] = {}
        for index in sorted(range(len(requests)), key=lambda index: repr(requests[index].messages[:-1])):
            replies[index] = self._reply(requests[index])
        return [replies[index] for index in range(len(requests))]

    def count_tokens(self, text: str) -> int:
        """Return the exact number of tokens that the model reads for `text`; its tokenizer alone counts where known."""
        return self._count(text)

    def _reply(self, request: ChatRequest) -> ChatReply:
        start = time.perf_counter()
        try:
            content = self._server.chat(_as_dicts(request.messages), _settings(request, self.max_tokens))
        except ServerError as error:
            return ChatReply(error=str(error), seconds=time.perf_counter() - start)
        choice, usage = content["choices"][0], content["usage"]
        text, thinking = split_thinking(choice["message"].get("content") or "")
        return ChatReply(
            text=text,
            thinking=choice["message"].get("reasoning_content") or thinking,
            tokens_in=usage["prompt_tokens"],
            tokens_out=usage["completion_tokens"],
            seconds=time.perf_counter() - start,
            truncated=choice.get("finish_reason") == "length",
        )

    @cached_property
    def _source(self) -> Source:
        source = find(self.name)
        if source.on_hub or not source.location.endswith(".gguf"):
            raise ModelError(f"llamacpp reads {_PACKAGED} or the path of an existing .gguf file, got {self.name!r}.")
        return source

    @cached_property
    def _count(self) -> Callable[[str], int]:
        tokenizer = gguf_tokenizer(Path(self._source.location))
        if tokenizer is None:
            return self._server.count_tokens
        return lru_cache(_TEXTS_COUNTED)(lambda text: len(tokenizer.encode(text, add_special_tokens=False)))

    @cached_property
    def _server(self) -> LlamaCppServer:
        given = Path(self._source.location)
        path = q8_0_copy(given) if self.name == _PACKAGED else given
        return LlamaCppServer(path, self.context_tokens, self.threads or _free_threads())


def _free_threads() -> int:
    """Return this process's share of the cores: a sweep that runs variants side by side sets OMP_NUM_THREADS."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdigit() and int(given) else len(os.sched_getaffinity(0))


def _as_dicts(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


def _settings(request: ChatRequest, most: int | None) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "max_tokens": request.max_tokens if most is None else min(request.max_tokens, most),
        "temperature": request.temperature,
        "seed": request.seed,
        "chat_template_kwargs": {"enable_thinking": request.thinking},
    }
    if request.json_schema is not None:
        schema = {"name": "reply", "schema": dict(request.json_schema)}
        settings["response_format"] = {"type": "json_schema", "json_schema": schema}
    return settings
