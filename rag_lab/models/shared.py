"""From a model's name to the model: one shared instance for each name, so that weights load once.

Where a name stands, an object can stand, too: a custom model, or one of LangChain's. Calls of a chat model are spans,
and in a sweep they are entered in its ledger, if no limit forbids them: the sweep sets the environment of a variant's
kernel, and stages and models know nothing of it.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from rag_lab._kit.digest import source_digest
from rag_lab._kit.registry import Kind
from rag_lab._kit.tracing import Span, is_traced, span
from rag_lab.errors import ModelError, RagLabError
from rag_lab.memory.ledger import Caller, Ledger, Made, environment_ledger
from rag_lab.models.custom_models import custom_target, named_model, object_model
from rag_lab.models.failover import choose_model, missing
from rag_lab.models.host.hosted import hosted
from rag_lab.models.prices import price
from rag_lab.models.protocols import (
    ChatModel,
    ChatReply,
    ChatRequest,
    Concurrent,
    Embedder,
    PairScorer,
    with_least_thinking,
)
from rag_lab.models.providers import (
    CHAT_MODELS,
    CROSS_ENCODERS,
    EMBEDDERS,
    QUERY_LIKELIHOODS,
    ModelSpec,
    Provider,
    providers_of,
    split_name,
)
from rag_lab.models.truncation import request_tokens

_WAIT_S = 0.2


def metered(model: ChatModel, spec: str, purpose: str) -> ChatModel:
    """Return `model`; its calls are booked under `purpose` where the environment names a ledger, and may be spans."""
    ledger, payer = environment_ledger()
    if ledger:
        return MeteredChat(model, spec, ledger, payer, purpose)
    return SpannedChat(model, spec) if is_traced() else model


def booked(model: ChatModel, purpose: str) -> ChatModel:
    """Return `model` with its calls booked under another purpose, where they are booked."""
    if not isinstance(model, MeteredChat):
        return model
    return MeteredChat(model.inner, model.spec, model.ledger, model.payer, purpose)


class SpannedChat:
    """A chat model of which each batch of calls is a span."""

    def __init__(self, inner: ChatModel, spec: str) -> None:
        self.inner = inner
        self.spec = spec
        self.constrains_json = inner.constrains_json
        self.context_tokens = inner.context_tokens
        if isinstance(inner, Concurrent):
            self.concurrency = inner.concurrency

    @property
    def least_thinking_tokens(self) -> int:
        """Tokens of thinking that the inner model cannot do without."""
        return getattr(self.inner, "least_thinking_tokens", 0)

    def identity(self) -> Mapping[str, Any]:
        """Return the inner model's identity: to be watched changes no reply."""
        return self.inner.identity()

    def count_tokens(self, text: str) -> int:
        """Count as the inner model does."""
        return self.inner.count_tokens(text)

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order."""
        with span(f"chat {self.spec}") as said:
            replies = self.inner.generate(requests)
            _say_call(said, self.spec, requests, replies)
        return replies


class MeteredChat(SpannedChat):
    """A chat model whose calls `payer` pays from `ledger` for `purpose`, a stage or a metric.

    A forbidden call is a transient error: none remembers it.
    """

    def __init__(self, inner: ChatModel, spec: str, ledger: Ledger, payer: str, purpose: str = "") -> None:
        super().__init__(inner, spec)
        self.ledger = ledger
        self.payer = payer
        self.purpose = purpose

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order.

        Calls are entered at the most they can cost, so few may fit at first and more once the replies turn out
        cheaper; what fits by then is asked then.
        """
        caller = Caller(self.payer, self.purpose, self.spec)
        replies: list[ChatReply] = []
        while len(replies) < len(requests):
            rest = requests[len(replies) :]
            permit = self.ledger.ask(caller, [most_usd(self.inner, request) for request in rest])
            if permit.numbers:
                replies += self._call(rest[: len(permit.numbers)], permit.numbers)
            elif permit.wait:
                time.sleep(_WAIT_S)
            else:
                replies += [ChatReply(error=permit.reason, transient=True) for _ in rest]
        return replies

    def _call(self, requests: Sequence[ChatRequest], numbers: Sequence[int]) -> list[ChatReply]:
        with self._entered(numbers):
            replies = super().generate(requests)
        made = {n: reply for n, reply in zip(numbers, replies, strict=True) if reply.asked}
        self.ledger.strike([number for number in numbers if number not in made])
        self.ledger.correct(list(made), [Made(r.tokens_in, r.tokens_out, r.cost_usd, r.seconds) for r in made.values()])
        return replies

    @contextmanager
    def _entered(self, numbers: Sequence[int]) -> Iterator[None]:
        try:
            yield
        except RagLabError:  # the model cannot be used at all: nothing was asked
            self.ledger.strike(numbers)
            raise
        except BaseException:
            self.ledger.close(numbers)
            raise


def _say_call(said: Span, spec: str, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> None:
    said.set(
        gen_ai__operation__name="chat",
        gen_ai__provider__name=spec.partition(":")[0],
        gen_ai__request__model=spec,
        gen_ai__usage__input_tokens=sum(reply.tokens_in for reply in replies),
        gen_ai__usage__output_tokens=sum(reply.tokens_out for reply in replies),
        rag_lab__cost_usd=sum(reply.cost_usd for reply in replies),
        rag_lab__calls=len(replies),
    )
    said.set_text("gen_ai.prompt", "\n\n".join(one.content for request in requests for one in request.messages))
    said.set_text("gen_ai.completion", "\n\n".join(reply.text for reply in replies))


def most_usd(model: Any, request: ChatRequest) -> float:
    """Return the most that one call of `model` can cost by the price table; 0 for a model that costs nothing."""
    found = price(model.provider, model.name) if getattr(model, "priced", False) else None
    if found is None:
        return 0.0
    return found.cost_usd(request_tokens(request), with_least_thinking(model, request).most_tokens_out)


_NAMED: dict[tuple[str, str, str], Any] = {}  # kind, name, digest of the source: an edited one is another one
_GIVEN: dict[tuple[str, int], tuple[Any, Any]] = {}  # kind, address: the object, held so that it keeps that, and ours
_LOCK = threading.Lock()


def chat_model(model: str | Any, purpose: str = "") -> ChatModel:
    """Return the chat model of this name, e.g. `llamacpp:smollm2`, or the object that is given, as one.

    Nothing is loaded before its first call. In a sweep its calls are entered in the run's ledger, under `purpose`: the
    stage or metric that they serve.
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

    Of `first | second` it is the first that answers; see `failover`.
    """
    model = _playing(kind, model)
    with _LOCK:
        if not isinstance(model, str):
            at = (kind.name, id(model))
            if at not in _GIVEN:
                _GIVEN[at] = (model, object_model(kind, model))
            return _GIVEN[at][1]
        target = None if split_name(model, kind)[0] in kind.built_in else custom_target(kind, model)
        key = (kind.name, model, "" if target is None else source_digest(target))
        if key not in _NAMED:
            _NAMED[key] = _built_in(kind, model) if target is None else named_model(kind, model, target)
        return _NAMED[key]


def _playing(kind: Kind, model: str | Any) -> str | Any:
    """Return the name of the model that plays the role where several are named, else what was given."""
    return choose_model(kind, model, partial(model_of, kind)) if isinstance(model, str) else model


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
