"""From a model's name to the model: one shared instance for each name, so that weights load once."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from rag_lab.errors import ModelError
from rag_lab.models.metered import metered
from rag_lab.models.protocols import ChatModel, Embedder, PairScorer
from rag_lab.models.providers import PROVIDERS, Kind, Provider, providers_of
from rag_lab.models.requirements import cuda_problem, missing_key, missing_package
from rag_lab.models.spec import ModelSpec

_MODELS: dict[tuple[Kind, str], Any] = {}
_LOCK = threading.Lock()


def chat_model(spec: str, purpose: str = "") -> ChatModel:
    """Return the chat model of this name, e.g. `llamacpp:smollm2`. Nothing is loaded before its first call.

    In a sweep its calls are entered in the run's ledger, under `purpose`: the stage or metric that they serve.

    Raises:
        ModelError: if the name is malformed, or its provider or an option is unknown.
    """
    return metered(cast(ChatModel, _shared("chat", spec)), spec, purpose)


def embedder(spec: str) -> Embedder:
    """Return the embedding model of this name, e.g. `sentence_transformers:minilm`; see `chat_model`."""
    return cast(Embedder, _shared("embedding", spec))


def cross_encoder(spec: str) -> PairScorer:
    """Return the cross-encoder of this name, e.g. `sentence_transformers:bge-reranker-v2-m3`; see `chat_model`."""
    return cast(PairScorer, _shared("cross_encoder", spec))


def query_likelihood(spec: str) -> PairScorer:
    """Return the query-likelihood scorer of this name, e.g. `transformers:smollm2`; see `chat_model`."""
    return cast(PairScorer, _shared("query_likelihood", spec))


def spec_of(model: object) -> str:
    """Return the name by which a shared model was asked for, or '' for a model of another origin."""
    inner = getattr(model, "inner", model)  # metered, or remembering what it was asked
    return next((spec for (_, spec), known in _MODELS.items() if known is inner), "")


def _shared(kind: Kind, spec: str) -> Any:
    with _LOCK:
        if (kind, spec) not in _MODELS:
            _MODELS[kind, spec] = _construct(kind, spec)
        return _MODELS[kind, spec]


def _construct(kind: Kind, text: str) -> Any:
    spec = ModelSpec.parse(text, kind)
    provider = providers_of(kind)[spec.provider]
    module, _, name = provider.target.partition(":")
    constructor: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return constructor(spec.name, **spec.arguments(provider))


@dataclass(frozen=True, slots=True)
class ProviderInfo:
    """What `doctor` and the documentation say about one provider."""

    provider: Provider

    @property
    def title(self) -> str:
        """Return the provider and what it gives, e.g. `llamacpp (chat)`."""
        return f"{self.provider.name} ({self.provider.kind})"

    def check(self) -> str:
        """Return what keeps the provider from working here, in one sentence, or ''. No weights are loaded."""
        provider = self.provider
        problem = missing_package(provider.module, provider.package) or missing_key(provider.env)
        if problem:
            return problem
        if provider.needs_cuda:
            return cuda_problem(provider.name)
        return _missing_weights(provider.packaged) if provider.packaged else ""


def providers() -> list[ProviderInfo]:
    """Return every provider, in the order of the table."""
    return [ProviderInfo(provider) for provider in PROVIDERS]


def _missing_weights(name: str) -> str:
    from rag_lab.models.weights import packaged

    try:
        packaged(name)
    except ModelError as error:
        return str(error)
    return ""
