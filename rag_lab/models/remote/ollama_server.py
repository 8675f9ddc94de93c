"""An Ollama server: where it is, what it has and can, and which weights a name stands for there."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, FiniteFloat, JsonValue, StrictInt, StrictStr

from rag_lab._kit.home import home_at_work
from rag_lab._kit.process import timed
from rag_lab._kit.whole_file import whole_file
from rag_lab.errors import ModelError
from rag_lab.models.options import check_url
from rag_lab.models.remote.failures import BadReply, classify
from rag_lab.models.remote.http import MIB, HttpBounds
from rag_lab.models.remote.reply_shapes import check_lengths, check_of, read_as
from rag_lab.models.requirements import require_package


class _Message(BaseModel):
    role: StrictStr
    content: StrictStr | None = None
    thinking: StrictStr | None = None
    tool_calls: list[Any] | None = None


class _Chat(BaseModel):
    message: _Message
    done: Literal[True]
    done_reason: StrictStr | None = None
    prompt_eval_count: StrictInt | None = None
    eval_count: StrictInt | None = None


class _Embeddings(BaseModel):
    embeddings: Annotated[list[Annotated[list[FiniteFloat], Field(min_length=1)]], Field(min_length=1)]
    prompt_eval_count: StrictInt | None = None


def check_chat(content: bytes) -> None:
    """Check the body of a chat reply: whole, and not only the word that the model was loaded."""
    found = read_as(content, _Chat, "reply of Ollama")
    if found.done_reason == "load":
        raise BadReply("Ollama loaded the model and wrote no reply")


def check_ollama_embeddings(content: bytes) -> None:
    """Check the body of a batch of embeddings: finite vectors of one length; see `check_chat`."""
    check_lengths(read_as(content, _Embeddings, "batch of embeddings").embeddings)


check_description = check_of(dict[str, JsonValue], "description of models")


_DIGESTS_FILE = "ollama_digests.json"


def recalled_digest(address: str, name: str) -> str:
    """Return the last known digest of a model of the server at `address`, or ''."""
    return _known_digests().get(_digest_key(address, name), "")


def remember_digest(address: str, name: str, digest: str) -> None:
    """Keep the digest of a model, where it is not kept yet."""
    known, key = _known_digests(), _digest_key(address, name)
    if known.get(key) == digest:
        return
    path = _digests_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as partial:
        partial.write_text(json.dumps(known | {key: digest}, indent=1, sort_keys=True), encoding="utf-8")


def _digest_key(address: str, name: str) -> str:
    return f"{address} {name}"


def _digests_path() -> Path:
    return home_at_work() / _DIGESTS_FILE


def _known_digests() -> dict[str, str]:
    try:
        found = json.loads(_digests_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}


VARIABLE = "OLLAMA_HOST"
_HERE, _PORT = "127.0.0.1", 11434
_ANY = "0.0.0.0"  # noqa: S104 - what a server listens on is no address to call
_TIMEOUT_S = 10.0
CHECK_S = 2.0
_HOLDS_S = 60.0  # an answer on which weights a name stands for
_MAX_REPLY_BYTES = 16 * MIB  # a description lists a model's tensors

T = TypeVar("T")


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
    """The server at `base_url`, else at OLLAMA_HOST, else on this machine. A key is OLLAMA_API_KEY, where it has one.

    Raises:
        ModelError: from every method that asks it, where it does not answer, or knows no such model.
    """

    def __init__(self, base_url: str = "") -> None:
        self.address = _address(base_url)

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

    def pulled(self, name: str) -> PulledModel | None:
        """Return the model of this name, whose tag is `latest` where it has none; None where there is no such."""
        return _of_name(self.models(), name)

    def described(self, name: str) -> ModelDescription:
        """Return what it tells of a model."""
        shown = self._asked(lambda: self._client.show(name), name)
        lengths = [value for key, value in (shown.modelinfo or {}).items() if key.endswith(".context_length")]
        context = next((value for value in lengths if isinstance(value, int)), 0)
        return ModelDescription(context, tuple(shown.capabilities or ()))

    def digest(self, name: str) -> str:
        """Return the digest of the weights that `name` stands for; the last one known where it does not answer now.

        `ollama pull` may put other weights under the same name: it is asked once a minute.
        """
        return _digest(self.address, name, int(time.monotonic() / _HOLDS_S))

    def problem(self, name: str = "", within_s: float = CHECK_S) -> str:
        """Return why it cannot be asked, or has no such model, in one sentence; '' where it answers in time."""
        try:
            _ = self._client  # its library is imported before the time runs
            pulled = timed(self.models, within_s)
        except (ModelError, TimeoutError) as error:
            return str(error) if isinstance(error, ModelError) else f"Ollama at {self.address} {error}."
        return "" if not name or _of_name(pulled, name) else _missing(name)

    def pull(self, name: str) -> Iterator[tuple[str, int, int]]:
        """Download a model onto the server; yield what it does now, and the bytes done and due of that (0: unknown)."""
        library = require_package("ollama", "langchain-ollama")
        try:
            for step in library.Client(host=self.address).pull(name, stream=True):
                yield step.status or "", step.completed or 0, step.total or 0
        except Exception as error:
            raise self._error(error, name) from None
        _digest.cache_clear()

    @cached_property
    def _client(self) -> Any:
        library = require_package("ollama", "langchain-ollama")
        bounds = HttpBounds(_TIMEOUT_S, _MAX_REPLY_BYTES, check_description)
        return library.Client(host=self.address, event_hooks=bounds.hooks())

    def _asked(self, call: Callable[[], T], name: str = "") -> T:
        try:
            return call()
        except ModelError:
            raise
        except Exception as error:
            raise self._error(error, name) from None

    def _error(self, error: Exception, name: str) -> ModelError:
        if name and getattr(error, "status_code", 0) == 404:
            return ModelError(_missing(name))
        if isinstance(error, ConnectionError) or "Connect" in type(error).__name__:
            return NoAnswer(
                f"No Ollama answers at {self.address}; start it with `ollama serve`, or name its address in {VARIABLE}."
            )
        return NoAnswer(f"Ollama at {self.address}: {classify(error).sentence}.")


def server_problem() -> str:
    """Return why the server that the environment names, else this machine's, cannot be asked; '' where it answers."""
    try:
        return OllamaServer().problem()
    except ModelError as error:
        return str(error)


def as_duration(text: str) -> str | int | None:
    """Return how long weights stay loaded as the server takes it: `10m`, seconds as a number, None where it decides."""
    try:
        return int(text) if text else None
    except ValueError:
        return text


@lru_cache
def _digest(address: str, name: str, minute: int) -> str:
    try:
        found = OllamaServer(address).pulled(name)
    except NoAnswer:
        if known := recalled_digest(address, name):
            return known
        raise
    if found is None:
        raise ModelError(_missing(name))
    remember_digest(address, name, found.digest)
    return found.digest


def _of_name(pulled: list[PulledModel], name: str) -> PulledModel | None:
    return next((model for model in pulled if model.name in (name, f"{name}:latest")), None)


def _missing(name: str) -> str:
    return f"Ollama has no model {name!r}; run: rag-lab models pull ollama:{name}"


def _address(base_url: str) -> str:
    given = base_url or os.environ.get(VARIABLE) or _HERE
    address = given if "://" in given else f"http://{given}"
    check_url(address, "The address of Ollama")
    parts = urlsplit(address)
    if parts.path.strip("/") == "v1":
        raise ModelError("The address of Ollama ends in /v1, its OpenAI interface; give it without, or take openai:.")
    host = _HERE if parts.hostname == _ANY else str(parts.hostname)
    host = f"[{host}]" if ":" in host else host
    port = parts.port or (_PORT if "://" not in given else None)
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"
