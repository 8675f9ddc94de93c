"""llama.cpp in this process (xllamacpp): the default chat model, on any CPU, with JSON-constrained output.

llama.cpp keeps what it has read of the last prompt and reads only what differs in the next one. Where that boundary
falls depends on the prompt before, the arithmetic depends on where it falls, and greedy text changes now and then (two
of thirty replies measured). Here the boundary is always the same for a request: everything before its last message is
read from scratch once, and each request starts from exactly that, so few-shot prompts are still read once. Several such
beginnings are kept, each in a slot of its own, so that stages which take turns do not read theirs again each time.
"""

import http.client
import json
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, astuple, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rag_lab._kit.machine import bytes_on_disk, usable_cores
from rag_lab.errors import ModelError
from rag_lab.models import protocols, requirements
from rag_lab.models.local import gguf
from rag_lab.models.local.local_model import LocalModel, MachineMeter
from rag_lab.models.weights import Source, find
from rag_lab.redaction import one_line

Messages = list[dict[str, str]]
_PACKAGED = "smollm2"
_TEXTS_COUNTED = 65_536  # remembered: many questions find the same passages
_LEAST_THOUGHT = 1  # what llama.cpp can end: a budget of 0 leaves thinking open that a template has begun
_TOKENS_TO_CLOSE = 8  # `</think>` and line breaks, which are written at the budget
_TOKENS_AROUND = 16  # what a chat template puts around a message
_SMALL_MB = 1_000  # of weights: such a model is given a server for each core that is left
_MOST_SERVERS = 4
_PREFIXES = 2  # as many stages with examples of their own take turns, where memory is no matter


class ServerError(Exception):
    """What llama.cpp said about one request."""


class LlamaCppServer:
    """Loads a GGUF file and answers one chat at a time."""

    def __init__(
        self,
        path: Path,
        context_tokens: int,
        threads: int,
        kv: str | None = None,  # type of the cache of keys and values
        batch: int | None = None,  # tokens of a prompt that are read at a time
        prefixes: int = 1,  # that are kept at a time, each in a cache of its own
    ) -> None:
        xllamacpp = requirements.require_package("xllamacpp", "xllamacpp")
        self._key = secrets.token_urlsafe()  # other users of the machine must not use the loopback port
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = context_tokens * prefixes
        params.n_parallel = prefixes  # computing in several at once gave no gain on a CPU
        params.kv_unified = False  # each has the whole context
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        if kv is not None:
            params.cache_type_k = params.cache_type_v = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{kv.upper()}")
            params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED  # values need it
        if batch is not None:
            params.n_batch = params.n_ubatch = batch
        params.verbosity = -1
        params.cache_ram_mib = 0  # by default up to 8 GiB of earlier prompts are kept
        params.api_keys = [self._key]
        try:
            self._server = xllamacpp.Server(params)
        except (RuntimeError, ValueError, OSError) as error:
            raise ModelError(
                f"llama.cpp cannot load {path.name} ({one_line(str(error))}); give a whole GGUF file that fits in "
                "memory."
            ) from error
        self._lock = threading.Lock()
        slots: dict[int, tuple[Messages, dict[str, Any]] | None] = dict.fromkeys(range(prefixes))
        self._slots = slots  # what each was last primed with, the longest unused first
        self.count_tokens = lru_cache(maxsize=_TEXTS_COUNTED)(self._count_tokens)

    def chat(self, messages: Messages, settings: dict[str, Any]) -> dict[str, Any]:
        """Return llama.cpp's chat completion; the `LISTENER` of this thread hears its text while it is written."""
        prefix = messages[:-1]
        wanted = (prefix, settings["chat_template_kwargs"])  # a template may write its switch before the messages
        with self._lock:
            slot = next((slot for slot, known in self._slots.items() if known == wanted), next(iter(self._slots)))
            known = self._slots.pop(slot)
            self._slots[slot] = None
            if prefix:  # the slot is brought to the state "has read exactly `prefix`"
                reading = {
                    "messages": prefix,
                    "id_slot": slot,
                    "max_tokens": 0,
                    "temperature": 0,
                    "add_generation_prompt": False,
                    "chat_template_kwargs": settings["chat_template_kwargs"],
                }
                if wanted != known:
                    self._call({**reading, "cache_prompt": False})
                # drops the last request, and reads the last token of the prefix again
                self._call({**reading, "cache_prompt": True})
                self._slots[slot] = wanted
            request = {"messages": messages, "id_slot": slot, "cache_prompt": bool(prefix), **settings}
            return self._call(request, protocols.LISTENER.get())

    def _call(self, request: dict[str, Any], listener: Callable[[str], object] | None = None) -> dict[str, Any]:
        ask = self._server.handle_chat_completions
        try:
            reply = ask(request) if listener is None else _heard(ask, request, listener)
        except ValueError as refused:  # a schema or a template that llama.cpp does not understand
            raise ServerError(f"llama.cpp refused the request: {one_line(str(refused))}") from refused
        content: dict[str, Any] = json.loads(reply) if isinstance(reply, str) else reply
        if "raised" in content:
            raise content["raised"]
        if "error" in content:
            error = content["error"]
            if isinstance(error, dict) and error.get("type") == "exceed_context_size_error":
                raise ServerError(
                    f"The prompt has {error['n_prompt_tokens']} tokens and the context holds {error['n_ctx']}; shorten "
                    "it or raise the model's option context."
                )
            message = error.get("message", error) if isinstance(error, dict) else error
            raise ServerError(f"llama.cpp answered with an error: {one_line(str(message))}")
        return content

    def _count_tokens(self, text: str) -> int:
        address = urlsplit(self._server.listening_address)
        connection = http.client.HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=60)
        try:
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
            connection.request("POST", "/tokenize", json.dumps({"content": text}), headers)
            return len(json.loads(connection.getresponse().read())["tokens"])
        finally:
            connection.close()


def _heard(ask: Callable[..., Any], request: dict[str, Any], listener: Callable[[str], object]) -> dict[str, Any]:
    """Return what `ask` returns of a whole request, from the pieces of a stream; what `listener` raised is in it."""
    message: dict[str, str] = {}
    whole: dict[str, Any] = {"choices": [{"message": message}]}

    def hear(piece: dict[str, Any]) -> None:
        try:
            whole.update({key: piece[key] for key in ("error", "usage") if key in piece})
            for choice in piece.get("choices", ()):
                whole["choices"][0]["finish_reason"] = choice["finish_reason"]
                for kind, text in choice["delta"].items():
                    message[kind] = message.get(kind, "") + (text or "")
                listener(message.get("content", ""))
        except BaseException as problem:
            whole["raised"] = problem
            raise  # ends the stream; llama.cpp swallows it

    ask({**request, "stream": True, "stream_options": {"include_usage": True}}, hear)
    return whole


@dataclass(eq=False, repr=False)
class LlamaCppChat(LocalModel):
    """A GGUF model: the packaged `smollm2`, or the path of a .gguf file. Calls from several threads take turns.

    A reply depends on its request alone (see `LlamaCppServer`), and is never longer than `max_tokens`. Thinking is
    ended at its budget by llama.cpp's sampler (`common/reasoning-budget.h`); the reply goes on from there, held to the
    schema. Where the context is too small for both, the reply keeps its length and the thought gets what is left.

    Args:
        weights: the type that they are stored in, of `gguf.TYPES`, or `given` for the file's; '': Q8_0 of the packaged.
        kv: the type of the cache of keys and values, one of `gguf.KV_TYPES`; 16 bits where None.
        batch: tokens of a prompt that are read at a time; llama.cpp's own 512 where None.
    """

    constrains_json = True
    concurrency = 1
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
            **{name: value for name, value in asked.items() if value is not None},
            "library": requirements.library("xllamacpp"),
            **({"thinking": 1} if self._card.thinks else {}),
        }

    def generate(self, requests: Sequence[protocols.ChatRequest]) -> list[protocols.ChatReply]:
        """Return one reply for each request, in order; requests that share earlier messages are answered together."""
        if not requests:
            return []
        order = sorted(range(len(requests)), key=lambda index: repr(requests[index].messages[:-1]))
        free = deque(self.loaded)  # loaded before any clock runs
        if len(requests) == 1:  # in this thread, whose listener hears it
            return [self._reply(requests[0], free[0])]

        def reply(index: int) -> protocols.ChatReply:
            server = free.popleft()
            try:
                return self._reply(requests[index], server)
            finally:
                free.append(server)

        with ThreadPoolExecutor(len(free)) as side_by_side:
            replies = dict(zip(order, side_by_side.map(reply, order), strict=True))
        return [replies[index] for index in range(len(requests))]

    def count_tokens(self, text: str) -> int:
        """Return the exact number of tokens that the model reads for `text`; its tokenizer alone counts where known."""
        return self._count(text)

    def _reply(self, request: protocols.ChatRequest, server: LlamaCppServer) -> protocols.ChatReply:
        start = time.perf_counter()
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        try:
            content, machine = self._meter.measured(lambda: server.chat(messages, self._settings(request)))
        except ServerError as error:
            return protocols.ChatReply(error=str(error), seconds=time.perf_counter() - start)
        choice, usage = content["choices"][0], content["usage"]
        text, inline = protocols.split_thinking(choice["message"].get("content") or "")
        thinking = (choice["message"].get("reasoning_content") or inline).strip()
        return protocols.ChatReply(
            text=text,
            thinking=thinking,
            tokens_in=usage["prompt_tokens"],
            tokens_out=usage["completion_tokens"],
            seconds=time.perf_counter() - start,
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
        return lru_cache(_TEXTS_COUNTED)(lambda text: len(tokenizer.encode(text, add_special_tokens=False)))

    @cached_property
    def loaded(self) -> list[LlamaCppServer]:
        """The servers that have the weights."""
        servers, threads, prefixes = self.shape
        path, context = self.stored_path(), self.context_tokens
        with self._meter.loading():
            return [LlamaCppServer(path, context, threads, self.kv, self.batch, prefixes) for _ in range(servers)]

    @cached_property
    def shape(self) -> tuple[int, int, int]:
        """How many servers there are, threads of each, and prefixes that each keeps.

        A small model answers on each core that its threads leave over, sharing its weights. Threads are the option's,
        else what OMP_NUM_THREADS says, else all cores but one: they wait for each other after every layer, so that on
        two cores two threads took twice as long as one, and two servers of one thread a little more than half as long
        as one server.
        """
        cores = usable_cores()
        given = os.environ.get("OMP_NUM_THREADS", "")
        threads = self.threads or (int(given) if given.isdigit() and int(given) else max(1, cores - 1))
        if bytes_on_disk(self.stored_path()) > _SMALL_MB * 2**20:
            return 1, threads, 1
        return min(_MOST_SERVERS, max(1, cores // threads)), threads, _PREFIXES
