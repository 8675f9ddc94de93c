"""llama.cpp in this process (xllamacpp): the default chat model, on any CPU, with JSON-constrained output."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import KW_ONLY, astuple, dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rag_lab._kit.machine import bytes_on_disk, usable_cores
from rag_lab.errors import ModelError
from rag_lab.models import protocols, requirements
from rag_lab.models.local import gguf
from rag_lab.models.local.llama_server import TEXTS_COUNTED, Beginnings, Chat, Listener, LlamaCppServer, ServerError
from rag_lab.models.local.local_model import LocalModel, MachineMeter
from rag_lab.models.weights import Source, find
from rag_lab.records import MachineUse

_PACKAGED = "smollm2"
_LEAST_THOUGHT = 1  # what llama.cpp can end: a budget of 0 leaves thinking open that a template has begun
_TOKENS_TO_CLOSE = 8  # `</think>` and line breaks, which are written at the budget
_TOKENS_AROUND = 16  # what a chat template puts around a message
_SMALL_MB = 1_000  # of weights: such a model is given a server for each core that is left
_MOST_SERVERS = 4
_TOGETHER = 4  # replies of a small model; eight gain little more


@dataclass(frozen=True, eq=False)
class _Asked:
    request: protocols.ChatRequest
    listener: Listener | None
    reply: Future[protocols.ChatReply] = field(default_factory=Future)


@dataclass(eq=False, repr=False)
class LlamaCppChat(LocalModel):
    """A GGUF model: the packaged `smollm2`, or the path of a .gguf file.

    Calls from several threads are answered together; a reply depends on its request alone, and is never longer than
    `max_tokens`. Thinking is ended at its budget by llama.cpp's sampler (`common/reasoning-budget.h`); the reply goes
    on from there, held to the schema. Where the context is too small for both, the reply keeps its length and the
    thought gets what is left.

    Args:
        weights: the type that they are stored in, of `gguf.TYPES`, or `given` for the file's; '': Q8_0 of the packaged.
        kv: the type of the cache of keys and values, one of `gguf.KV_TYPES`; 16 bits where None.
        batch: tokens of a prompt that are read at a time; llama.cpp's own 512 where None.
    """

    constrains_json = True
    concurrency = 8  # more than most shapes answer at a time, so that none waits for requests
    runs_on = "cpu"

    name: str
    _: KW_ONLY
    context: int = 4096
    max_tokens: int | None = None
    threads: int | None = None
    weights: str = ""
    kv: str | None = None
    batch: int | None = None

    def __post_init__(self) -> None:
        self.context_tokens = self.context
        self.weights = self.weights or ("q8_0" if self.name == _PACKAGED else gguf.GIVEN)
        self._meter = MachineMeter()
        self._waiting: deque[_Asked] = deque()
        self._taking = threading.Lock()

    def __repr__(self) -> str:
        return f"LlamaCppChat({self.name!r}, context={self.context_tokens})"

    @cached_property
    def weights_held(self) -> str:
        """The file, and all that it is loaded with."""
        return f"llama.cpp {self._source.location} {astuple(self)[1:]}"

    def stored_path(self) -> Path:
        """Return the file that is loaded; it is made where the weights are to be stored in another type."""
        given = Path(self._source.location)
        return given if self.weights == gguf.GIVEN else gguf.stored_as(given, self.weights)

    @property
    def counts_alone(self) -> bool:
        """Whether tokens are counted without the weights: the file's tokenizer is one that is known."""
        return gguf.gguf_tokenizer(Path(self._source.location)) is not None

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, digest of the weights, how they are stored, context size and library version."""
        if problem := requirements.missing_package("xllamacpp", "xllamacpp"):
            raise ModelError(problem)
        asked = {"kv": self.kv, "batch": self.batch, "max_tokens": self.max_tokens}
        return {
            "provider": "llamacpp",
            "name": self._source.name,
            "weights": self._source.digest(),
            "stored_as": "as given" if self.weights == gguf.GIVEN else self.weights,
            "context_tokens": self.context_tokens,
            "reading": 2,  # raise it where a prompt is read in other steps, which changes a reply now and then
            **{name: value for name, value in asked.items() if value is not None},
            "library": requirements.library("xllamacpp"),
            **({"thinking": 1} if self._card.thinks else {}),
        }

    def generate(self, requests: Sequence[protocols.ChatRequest]) -> list[protocols.ChatReply]:
        """Return one reply for each request, in order; requests that share earlier messages are answered together."""
        if not requests:
            return []
        listener = protocols.LISTENER.get() if len(requests) == 1 else None
        asked = [_Asked(request, listener) for request in requests]
        workers = self._workers  # the weights are loaded before any clock runs
        self._waiting.extend(sorted(asked, key=lambda one: repr(one.request.messages[:-1])))
        for _ in asked:
            workers.submit(self._answer_some)
        try:
            return [one.reply.result() for one in asked]
        finally:
            for one in asked:  # where this call was interrupted
                one.reply.cancel()

    def _answer_some(self) -> None:
        """Have a free server answer its part of what waits, whoever asked for it."""
        servers, _, together = self.shape
        with self._taking:
            part = min(together, -(-len(self._waiting) // servers))
            taken = [self._waiting.popleft() for _ in range(part)]
            server = self._free.popleft()
        asked = [one for one in taken if one.reply.set_running_or_notify_cancel()]
        try:
            for one, reply in zip(asked, self._replies(asked, server) if asked else (), strict=True):
                if isinstance(reply, BaseException):
                    one.reply.set_exception(reply)
                else:
                    one.reply.set_result(reply)
        except BaseException as problem:
            for one in asked:
                one.reply.set_exception(problem)
        finally:
            self._free.append(server)

    def count_tokens(self, text: str) -> int:
        """Return the exact number of tokens that the model reads for `text`; its tokenizer alone counts where known."""
        return self._count(text)

    def _replies(self, asked: Sequence[_Asked], server: LlamaCppServer) -> list[protocols.ChatReply | BaseException]:
        """Return replies that are written together, each with its part of the time, or what a listener raised."""
        start = time.perf_counter()
        chats: list[Chat] = []
        for one in asked:
            messages = [{"role": message.role, "content": message.content} for message in one.request.messages]
            chats.append((messages, self._settings(one.request), one.listener))
        completions, machine = self._meter.measured(lambda: server.chat(chats))
        seconds, share = (time.perf_counter() - start) / len(asked), machine.share(len(asked))
        return [self._reply(completion, seconds, share) for completion in completions]

    def _reply(
        self, completion: dict[str, Any] | BaseException, seconds: float, machine: MachineUse
    ) -> protocols.ChatReply | BaseException:
        if isinstance(completion, ServerError):
            return protocols.ChatReply(error=str(completion), seconds=seconds)
        if isinstance(completion, BaseException):
            return completion
        choice, usage = completion["choices"][0], completion["usage"]
        text, inline = protocols.split_thinking(choice["message"].get("content") or "")
        thinking = (choice["message"].get("reasoning_content") or inline).strip()
        return protocols.ChatReply(
            text=text,
            thinking=thinking,
            tokens_in=usage["prompt_tokens"],
            tokens_out=usage["completion_tokens"],
            seconds=seconds,
            truncated=choice.get("finish_reason") == "length",
            thinking_tokens=min(self._count(thinking), usage["completion_tokens"]) if thinking else 0,
            machine=machine,
        )

    def _settings(self, request: protocols.ChatRequest) -> dict[str, Any]:
        most = request.max_tokens if self.max_tokens is None else min(request.max_tokens, self.max_tokens)
        settings: dict[str, Any] = {
            "max_tokens": most,
            "seed": request.seed,
            "chat_template_kwargs": {"enable_thinking": request.thinking},
            **self._card.sampling(request),
        }
        if self._card.thinks:
            read = sum(self._count(message.content) + _TOKENS_AROUND for message in request.messages)
            room = self.context_tokens - read - most - _TOKENS_TO_CLOSE
            budget = max(_LEAST_THOUGHT, min(request.thinking_tokens, room))
            settings |= {"thinking_budget_tokens": budget, "max_tokens": budget + _TOKENS_TO_CLOSE + most}
        if request.json_schema is not None:
            schema = {"name": "reply", "schema": dict(request.json_schema)}
            settings["response_format"] = {"type": "json_schema", "json_schema": schema}
        return settings

    @cached_property
    def _card(self) -> gguf.GgufCard:
        return gguf.gguf_card(gguf.gguf_metadata(Path(self._source.location), with_lists=False) or {})

    @cached_property
    def _source(self) -> Source:
        source = find(self.name)
        if source.on_hub or not source.location.endswith(".gguf"):
            raise ModelError(f"llamacpp reads {_PACKAGED} or the path of an existing .gguf file, got {self.name!r}.")
        if problem := gguf.gguf_problem(Path(source.location)):
            raise ModelError(f"llama.cpp cannot load {source.name}: it {problem}; download or copy it again.")
        return source

    @cached_property
    def _count(self) -> Callable[[str], int]:
        tokenizer = gguf.gguf_tokenizer(Path(self._source.location))
        if tokenizer is None:
            return self.loaded[0].count_tokens
        return lru_cache(TEXTS_COUNTED)(lambda text: len(tokenizer.encode(text, add_special_tokens=False)))

    @cached_property
    def loaded(self) -> list[LlamaCppServer]:
        """The servers that have the weights."""
        servers, threads, together = self.shape
        options = (self.stored_path(), self.context_tokens, threads, self.kv, self.batch, together, Beginnings())
        with self._meter.loading():
            return [LlamaCppServer(*options) for _ in range(servers)]

    @cached_property
    def _workers(self) -> ThreadPoolExecutor:
        self._free = deque(self.loaded)
        return ThreadPoolExecutor(len(self._free), "llama.cpp")

    @property
    def is_small(self) -> bool:
        """Whether each core may have a server, and the model be loaded while others work."""
        return bytes_on_disk(Path(self._source.location)) <= _SMALL_MB * 2**20

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """How many servers there are, threads of each, and replies that each writes at a time.

        A small model answers on each core that its threads leave over. Threads are the option's, else what
        OMP_NUM_THREADS says, else all cores but one: they wait for each other after every layer, and on two cores took
        twice as long as one. Of one thread four replies at a time took a fifth to a quarter less of the processor;
        several threads divide the work of one reply in another way than that of four, and would change it.
        """
        cores = usable_cores()
        given = os.environ.get("OMP_NUM_THREADS", "")
        threads = self.threads or (int(given) if given.isdigit() and int(given) else max(1, cores - 1))
        if not self.is_small:
            return 1, threads, 1
        return min(_MOST_SERVERS, max(1, cores // threads)), threads, _TOGETHER if threads == 1 else 1
