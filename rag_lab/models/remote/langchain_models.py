"""Any chat model, embeddings or cross-encoder of LangChain's, as ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar

from rag_lab._kit.digest import source_digest
from rag_lab._kit.machine import timed
from rag_lab._kit.registry import Kind, Module
from rag_lab.errors import ConfigError
from rag_lab.models.prices import price
from rag_lab.models.protocols import SAMPLING, ChatRequest
from rag_lab.models.providers import CHAT_MODELS, EMBEDDERS
from rag_lab.models.remote.langchain_chat import LangChainChat
from rag_lab.redaction import holds_secret, names_secret

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage

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
    """A chat model of LangChain's that somebody else made.

    What it was made with is kept; temperature, seed and the limit of tokens that were left open are the request's.
    """

    def __init__(self, module: Module) -> None:
        known = module.value._get_ls_params()
        self.provider = str(known.get("ls_provider") or "langchain")
        self._has_key = bool(module.value.lc_secrets)
        self._identity = {**described(module.value), "source": module.source}
        name = str(known.get("ls_model_name") or type(module.value).__name__)
        super().__init__(name, module.value, concurrency=4 if self._has_key else 1)  # what runs here may allow no more
        self.takes = tuple(field for field in SAMPLING if field in type(module.value).model_fields)

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, what it was made with, and the digest of its source; never a key."""
        return {**super().identity(), **self._identity}

    @property
    def priced(self) -> bool:
        """Whether it needs a key, or has a price: what runs on this machine costs nothing."""
        return self._has_key or price(self.provider, self.name) is not None

    def invoke(self, messages: list[BaseMessage], request: ChatRequest) -> AIMessage:
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
    """Return an object's class, with the digest of its source and its package's version, and what it was made with.

    Secrets and what is no plain value are left out; an object within it is described alike.
    """
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
