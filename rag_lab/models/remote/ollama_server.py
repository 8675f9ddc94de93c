"""An Ollama server: where it is, what it has and can, and which weights a name stands for there."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated, Any, Literal, NotRequired, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, StrictInt, StrictStr, TypeAdapter
from typing_extensions import TypedDict

from rag_lab._kit.digest import whole_file
from rag_lab._kit.home import home_at_work
from rag_lab._kit.machine import timed
from rag_lab.errors import ModelError
from rag_lab.models import options, prices, requirements
from rag_lab.models.remote import failures, http, replies
from rag_lab.models.remote.requests import RemoteModel

check_description = replies.check_of(dict[str, JsonValue], "description of models")
VARIABLE = "OLLAMA_HOST"
_HERE, _PORT = "127.0.0.1", 11434
_ANY = "0.0.0.0"  # noqa: S104 - what a server listens on is no address to call
_TIMEOUT_S = 10.0
CHECK_S = 2.0
_HOLDS_S = 60.0  # an answer on which weights a name stands for
_MAX_REPLY_BYTES = 16 * http.MIB  # a description lists a model's tensors
T = TypeVar("T")


class _Message(TypedDict):
    role: StrictStr
    content: NotRequired[StrictStr | None]
    thinking: NotRequired[StrictStr | None]
    tool_calls: NotRequired[list[Any] | None]


class _Chat(TypedDict):
    message: _Message
    done: Literal[True]
    done_reason: NotRequired[StrictStr | None]
    prompt_eval_count: NotRequired[StrictInt | None]
    eval_count: NotRequired[StrictInt | None]


class _Embeddings(TypedDict):
    embeddings: Annotated[list[replies.Vector], Field(min_length=1)]
    prompt_eval_count: NotRequired[StrictInt | None]


def check_chat(content: bytes) -> None:
    """Check the body of a chat reply: whole, and not only the word that the model was loaded."""
    if replies.read_as(content, _Chat, "reply of Ollama").get("done_reason") == "load":
        raise failures.BadReply("Ollama loaded the model and wrote no reply")


def check_ollama_embeddings(content: bytes) -> None:
    """Check the body of a batch of embeddings: finite vectors of one length; see `check_chat`."""
    replies.check_lengths(replies.read_as(content, _Embeddings, "batch of embeddings")["embeddings"])


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

    What asks it raises a `ModelError` where it does not answer, or knows no such model.
    """

    def __init__(self, base_url: str = "") -> None:
        given = base_url or os.environ.get(VARIABLE) or _HERE
        address = given if "://" in given else f"http://{given}"
        options.check_url(address, "The address of Ollama")
        parts = urlsplit(address)
        if parts.path.strip("/") == "v1":
            raise ModelError(
                "The address of Ollama ends in /v1, its OpenAI interface; give it without, or take openai:."
            )
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
            raise ModelError(_missing(name))
        return found

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
        bounds = http.HttpBounds(_TIMEOUT_S, _MAX_REPLY_BYTES, check_description)
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
        return NoAnswer(f"Ollama at {self.address}: {failures.classify(error).sentence}.")


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
    def priced(self) -> bool:
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


def _missing(name: str) -> str:
    return f"Ollama has no model {name!r}; run: rag-lab models pull ollama:{name}"
