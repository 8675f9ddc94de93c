"""From a model's name to the model: one shared instance for each name, so that weights load once.

Where a name stands, an object can stand, too: a model of one's own, or one of LangChain's.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from rag_lab._kit.digest import source_digest
from rag_lab._kit.registry import Kind
from rag_lab.errors import ModelError
from rag_lab.models.failover.choice import answering
from rag_lab.models.failover.usable import missing
from rag_lab.models.host.hosted import hosted
from rag_lab.models.metered import metered
from rag_lab.models.own import given_model, named_model, own_target
from rag_lab.models.protocols import ChatModel, Embedder, PairScorer
from rag_lab.models.providers import (
    CHAT_MODELS,
    CROSS_ENCODERS,
    EMBEDDERS,
    QUERY_LIKELIHOODS,
    Provider,
    providers_of,
)
from rag_lab.models.spec import ModelSpec, split_name

_NAMED: dict[tuple[str, str, str], Any] = {}  # kind, name, digest of the source: an edited one is another one
_GIVEN: dict[tuple[str, int], tuple[Any, Any]] = {}  # kind, address: the object, held so that it keeps that, and ours
_LOCK = threading.Lock()


def chat_model(model: str | Any, purpose: str = "") -> ChatModel:
    """Return the chat model of this name, e.g. `llamacpp:smollm2`, or the object that is given, as one.

    Nothing is loaded before its first call. In a sweep its calls are entered in the run's ledger, under `purpose`: the
    stage or metric that they serve.

    Raises:
        ModelError: if the name is malformed, its provider or an option is unknown, or a model of one's own cannot be.
    """
    model = _playing(CHAT_MODELS, model)
    found = model_of(CHAT_MODELS, model)
    return metered(cast(ChatModel, found), model if isinstance(model, str) else repr(found), purpose)


def embedder(model: str | Any) -> Embedder:
    """Return the embedding model of this name, e.g. `sentence_transformers:minilm`; see `chat_model`."""
    return cast(Embedder, model_of(EMBEDDERS, model))


def cross_encoder(model: str | Any) -> PairScorer:
    """Return the cross-encoder of this name, e.g. `sentence_transformers:bge-reranker-v2-m3`; see `chat_model`."""
    return cast(PairScorer, model_of(CROSS_ENCODERS, model))


def query_likelihood(model: str | Any) -> PairScorer:
    """Return the query-likelihood scorer of this name, e.g. `transformers:smollm2`; see `chat_model`."""
    return cast(PairScorer, model_of(QUERY_LIKELIHOODS, model))


def spec_of(model: object) -> str:
    """Return the name by which a shared model was asked for, or '' for a model of another origin."""
    inner = getattr(model, "inner", model)  # metered, or remembering what it was asked
    return next((name for (_, name, _), known in _NAMED.items() if known is inner), "")


def model_of(kind: Kind, model: str | Any) -> Any:
    """Return the one shared model of this kind for a name, or for an object; see `chat_model`.

    Of `first | second` it is the first that answers; see `failover.choice`.

    Raises:
        ModelError: if there is none.
    """
    model = _playing(kind, model)
    with _LOCK:
        if not isinstance(model, str):
            at = (kind.name, id(model))
            if at not in _GIVEN:
                _GIVEN[at] = (model, given_model(kind, model))
            return _GIVEN[at][1]
        target = None if split_name(model, kind)[0] in kind.built_in else own_target(kind, model)
        key = (kind.name, model, "" if target is None else source_digest(target))
        if key not in _NAMED:
            _NAMED[key] = _built_in(kind, model) if target is None else named_model(kind, model, target)
        return _NAMED[key]


def _playing(kind: Kind, model: str | Any) -> str | Any:
    """Return the name of the model that plays the role where several are named, else what was given."""
    return answering(kind, model, partial(model_of, kind)) if isinstance(model, str) else model


def _built_in(kind: Kind, text: str) -> Any:
    spec = ModelSpec.parse(text, kind)
    provider = providers_of(kind)[spec.provider]
    return hosted(kind, text, _target(provider.target)(spec.name, **spec.arguments(provider)))


def _target(text: str) -> Callable[..., Any]:
    module, _, name = text.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def provider_problem(name: str, provider: Provider) -> str:
    """Return what keeps a provider from working here, in one sentence, or ''. No weights are loaded."""
    if problem := missing(name, provider):
        return problem
    if provider.problem:
        return str(_target(provider.problem)())
    return _missing_weights(provider.packaged) if provider.packaged else ""


def _missing_weights(name: str) -> str:
    from rag_lab.models.weights import packaged

    try:
        packaged(name)
    except ModelError as error:
        return str(error)
    return ""
