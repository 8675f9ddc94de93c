"""A GGUF file that llama.cpp has loaded, and the completions of several chats at a time, each as it would be alone.

llama.cpp keeps what it has read of the last prompt and reads only what differs in the next one. Where that boundary
falls depends on the prompt before, the arithmetic depends on where it falls, and greedy text changes now and then (two
of thirty replies measured). Here the boundary is always the same for a request: everything before its last message is
read from scratch once and kept in a file, from which each request starts, so few-shot prompts are still read once, by
one of a model's servers. A small model writes several replies at a time, a token of each in one step: their prompts are
read one after the other before, so that each is computed as it would be alone, to the last bit.
"""

import hashlib
import http.client
import json
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rag_lab.errors import ModelError
from rag_lab.models import requirements
from rag_lab.redaction import one_line

Messages = list[dict[str, str]]
Listener = Callable[[str], object]  # hears the text while it is written
Chat = tuple[Messages, dict[str, Any], Listener | None]  # with llama.cpp's settings
_BEGINNINGS = 4  # of prompts that are kept: as many stages with examples of their own take turns
TEXTS_COUNTED = 65_536  # remembered: many questions find the same passages


class ServerError(Exception):
    """What llama.cpp said about one request."""


class Beginnings:
    """Files of what was read before the last messages of prompts, for all servers of a model."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rag_lab_prompts_")
        self.path = Path(self._folder.name)
        self._locks: dict[str, threading.Lock] = {}  # of each file, the longest unused first
        self._changing = threading.Lock()

    @contextmanager
    def held(self, name: str) -> Iterator[Path]:
        """Yield the path of a file, which one server at a time reads or writes."""
        with self._changing:
            self._locks[name] = lock = self._locks.pop(name, None) or threading.Lock()
            for unused in [one for one, its in self._locks.items() if not its.locked()][:-_BEGINNINGS]:
                del self._locks[unused]
                (self.path / unused).unlink(missing_ok=True)
        with lock:
            yield self.path / name


class LlamaCppServer:
    """Loads a GGUF file and writes the replies of several chats at a time."""

    def __init__(
        self,
        path: Path,
        context_tokens: int,
        threads: int,
        kv: str | None = None,  # type of the cache of keys and values
        batch: int | None = None,  # tokens of a prompt that are read at a time
        together: int = 1,  # the most chats at a time, each with a cache of its own
        beginnings: Beginnings | None = None,
    ) -> None:
        xllamacpp = requirements.require_package("xllamacpp", "xllamacpp")
        self._key = secrets.token_urlsafe()  # other users of the machine must not use the loopback port
        self._beginnings = beginnings or Beginnings()
        self._together = together
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = context_tokens * together
        params.n_parallel = together
        params.kv_unified = False  # each has the whole context
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        if kv is not None:
            params.cache_type_k = params.cache_type_v = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{kv.upper()}")
            params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED  # values need it
        if batch is not None:
            params.n_batch = params.n_ubatch = batch
        params.verbosity = -1
        params.fit_params = False  # to the memory of a GPU, for which the file would be loaded twice
        params.cache_ram_mib = 0  # by default up to 8 GiB of earlier prompts are kept
        params.endpoint_slots, params.slot_save_path = True, f"{self._beginnings.path}/"
        params.api_keys = [self._key]
        try:
            self._server = xllamacpp.Server(params)
        except (RuntimeError, ValueError, OSError) as error:
            raise ModelError(
                f"llama.cpp cannot load {path.name} ({one_line(str(error))}); give a whole GGUF file that fits in "
                "memory."
            ) from error
        self.count_tokens: Callable[[str], int] = lru_cache(maxsize=TEXTS_COUNTED)(
            lambda text: len(self._post("/tokenize", {"content": text})["tokens"])
        )

    def chat(self, chats: Sequence[Chat]) -> list[dict[str, Any] | BaseException]:
        """Return llama.cpp's completion of each chat, or why there is none; not more than `together` at a time."""
        read = [_caught(self._read, slot, *chat[:2]) for slot, chat in enumerate(chats)]
        asked = [
            {"messages": messages, "id_slot": slot, "cache_prompt": self._together > 1 or len(messages) > 1, **settings}
            for slot, (messages, settings, _) in enumerate(chats)
        ]
        listeners = [listener for _, _, listener in chats]
        with ThreadPoolExecutor(len(chats)) as writers:
            return list(writers.map(lambda fault, *call: fault or _caught(self._call, *call), read, asked, listeners))

    def _read(self, slot: int, messages: Messages, settings: dict[str, Any]) -> None:
        """Bring a slot to where it has read all but the last message; where others write beside it, that, too."""
        template = settings["chat_template_kwargs"]  # which may write its switch before the messages
        reading = {"id_slot": slot, "max_tokens": 0, "temperature": 0, "chat_template_kwargs": template}
        if beginning := messages[:-1]:
            name = hashlib.sha256(json.dumps([beginning, template]).encode()).hexdigest()
            with self._beginnings.held(name) as kept:
                file = {"filename": name}
                if not kept.exists() or "error" in self._post(f"/slots/{slot}?action=restore", file):
                    whole = {"messages": beginning, "add_generation_prompt": False, "cache_prompt": False}
                    self._call({**reading, **whole})
                    self._post(f"/slots/{slot}?action=save", file)
        if self._together > 1:  # nothing is left to read while others write, which would be other steps
            self._call({**reading, "messages": messages, "cache_prompt": bool(beginning)})

    def _call(self, request: dict[str, Any], listener: Listener | None = None) -> dict[str, Any]:
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

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return what the server answers by HTTP, which offers what its Python interface does not."""
        address = urlsplit(self._server.listening_address)
        connection = http.client.HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=60)
        try:
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
            connection.request("POST", path, json.dumps(body), headers)
            found: dict[str, Any] = json.loads(connection.getresponse().read())
            return found
        finally:
            connection.close()


def _caught(call: Callable[..., Any], *values: Any) -> Any:
    """Return what a call returns, or what it raises."""
    try:
        return call(*values)
    except BaseException as problem:
        return problem


def _heard(ask: Callable[..., Any], request: dict[str, Any], listener: Listener) -> dict[str, Any]:
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
