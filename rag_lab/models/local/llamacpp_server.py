"""One llama.cpp server in this process: locked, quiet, and with a prefix reuse that does not change its answers.

llama.cpp keeps what it has read of the last prompt and reads only what differs in the next one. Where that boundary
falls depends on the prompt before, the arithmetic depends on where it falls, and greedy text changes now and then (two
of thirty replies measured). Here the boundary is always the same for a request: everything before its last message is
read from scratch once, and each request starts from exactly that, so few-shot prompts are still read once. Several such
beginnings are kept, each in a slot of its own, so that stages which take turns do not read theirs again each time.
"""

import http.client
import json
import secrets
import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rag_lab.errors import ModelError
from rag_lab.models.requirements import require_package
from rag_lab.redaction import one_line

Messages = list[dict[str, str]]


class ServerError(Exception):
    """What llama.cpp said about one request."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a model is given to work with; None is llama.cpp's own default."""

    context_tokens: int
    threads: int
    kv: str | None = None  # type of the cache of keys and values
    batch: int | None = None  # tokens of a prompt that are read at a time
    prefixes: int = 1  # that are kept at a time, each in a cache of its own


class LlamaCppServer:
    """Loads a GGUF file and answers one chat at a time."""

    def __init__(self, path: Path, settings: ServerSettings) -> None:
        self._key = secrets.token_urlsafe()  # other users of the machine must not use the loopback port
        self._server = _start(path, settings, self._key)
        self._lock = threading.Lock()
        slots: dict[int, tuple[Messages, dict[str, Any]] | None] = dict.fromkeys(range(settings.prefixes))
        self._slots = slots  # what each was last primed with, the longest unused first
        self.count_tokens = lru_cache(maxsize=65_536)(self._count_tokens)

    def chat(self, messages: Messages, settings: dict[str, Any]) -> dict[str, Any]:
        """Return llama.cpp's chat completion."""
        with self._lock:
            slot, reusing = self._prime(messages[:-1], settings)
            return self._call({"messages": messages, "id_slot": slot, "cache_prompt": reusing, **settings})

    def _prime(self, prefix: Messages, settings: dict[str, Any]) -> tuple[int, bool]:
        """Bring a slot to the state "has read exactly `prefix`"; return it, and whether there is a prefix to reuse."""
        wanted = (prefix, settings["chat_template_kwargs"])  # a template may write its switch before the messages
        slot = next((slot for slot, known in self._slots.items() if known == wanted), next(iter(self._slots)))
        known = self._slots.pop(slot)
        self._slots[slot] = None
        if not prefix:
            return slot, False
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
        self._call({**reading, "cache_prompt": True})  # drops the last request, reads the prefix's last token again
        self._slots[slot] = wanted
        return slot, True

    def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            reply = self._server.handle_chat_completions(request)
        except ValueError as refused:  # a schema or a template that llama.cpp does not understand
            raise ServerError(f"llama.cpp refused the request: {one_line(str(refused))}") from refused
        content: dict[str, Any] = json.loads(reply) if isinstance(reply, str) else reply
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


def _start(path: Path, settings: ServerSettings, key: str) -> Any:
    xllamacpp = require_package("xllamacpp", "xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = settings.context_tokens * settings.prefixes
    params.n_parallel = settings.prefixes  # computing in several at once gave no gain on a CPU
    params.kv_unified = False  # each has the whole context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    if settings.kv is not None:
        params.cache_type_k = params.cache_type_v = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{settings.kv.upper()}")
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED  # values need it
    if settings.batch is not None:
        params.n_batch = params.n_ubatch = settings.batch
    params.verbosity = -1
    params.cache_ram_mib = 0  # by default up to 8 GiB of earlier prompts are kept
    params.api_keys = [key]
    try:
        return xllamacpp.Server(params)
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelError(
            f"llama.cpp cannot load {path.name} ({one_line(str(error))}); give a whole GGUF file that fits in memory."
        ) from error
