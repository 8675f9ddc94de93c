"""From a model's name to the model: one shared instance for each name, so that weights load once.

Where a name stands, an object can stand, too: a custom model, or one of LangChain's. Calls of a chat model are spans,
and in a sweep they are entered in its ledger, if no limit forbids them: the sweep sets the environment of a variant's
kernel, and stages and models know nothing of it.
"""

import importlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, cast

from rag_lab._kit.digest import source_digest
from rag_lab._kit.observability import is_traced, span
from rag_lab._kit.registry import Kind
from rag_lab.errors import RagLabError
from rag_lab.memory.ledger import Caller, Ledger, Made, environment_ledger
from rag_lab.models import custom_models, failover, prices, protocols, providers, requirements, truncation, weights
from rag_lab.models.hosted import hosted

_WAIT_S = 0.2
_NAMED: dict[tuple[str, str, str], Any] = {}  # kind, name, digest of the source: an edited one is another one
_GIVEN: dict[tuple[str, int], tuple[Any, Any]] = {}  # kind, address: the object, held so that it keeps that, and ours
_LOCK = threading.Lock()


def booked(model: protocols.ChatModel, purpose: str) -> protocols.ChatModel:
    """Return `model` with its calls booked under another purpose, where they are booked."""
    return replace(model, purpose=purpose) if isinstance(model, MeteredChat) else model


@dataclass(eq=False)
class MeteredChat:
    """A chat model of which each batch of calls is a span, and which `payer` pays from `ledger`, where there is one.

    They are entered for `purpose`, a stage or a metric. A forbidden call is a transient error: none remembers it.
    """

    inner: protocols.ChatModel
    spec: str
    ledger: Ledger | None
    payer: str
    purpose: str = ""

    def __post_init__(self) -> None:
        self.constrains_json = self.inner.constrains_json
        self.context_tokens = self.inner.context_tokens
        if isinstance(self.inner, protocols.Concurrent):
            self.concurrency = self.inner.concurrency

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

    def generate(self, requests: Sequence[protocols.ChatRequest]) -> list[protocols.ChatReply]:
        """Return one reply for each request, in order.

        Calls are entered at the most they can cost, so few may fit at first and more once the replies turn out
        cheaper; what fits by then is asked then.
        """
        if self.ledger is None:
            return self._call(requests)
        caller = Caller(self.payer, self.purpose, self.spec)
        replies: list[protocols.ChatReply] = []
        while len(replies) < len(requests):
            rest = requests[len(replies) :]
            permit = self.ledger.ask(caller, [most_usd(self.inner, request) for request in rest])
            if permit.wait and not permit.numbers:
                time.sleep(_WAIT_S)
                continue
            if not permit.numbers:
                return replies + [protocols.ChatReply(error=permit.reason, transient=True) for _ in rest]
            try:
                some = self._call(rest[: len(permit.numbers)])
            except RagLabError:  # the model cannot be used at all: nothing was asked
                self.ledger.strike(permit.numbers)
                raise
            except BaseException:
                self.ledger.close(permit.numbers)
                raise
            made = {n: reply for n, reply in zip(permit.numbers, some, strict=True) if reply.asked}
            self.ledger.strike([number for number in permit.numbers if number not in made])
            costs = [Made(one.tokens_in, one.tokens_out, one.cost_usd, one.seconds) for one in made.values()]
            self.ledger.correct(list(made), costs)
            replies += some
        return replies

    def _call(self, requests: Sequence[protocols.ChatRequest]) -> list[protocols.ChatReply]:
        with span(f"chat {self.spec}") as call:
            replies = self.inner.generate(requests)
            call.set(
                gen_ai__operation__name="chat",
                gen_ai__provider__name=self.spec.partition(":")[0],
                gen_ai__request__model=self.spec,
                gen_ai__usage__input_tokens=sum(reply.tokens_in for reply in replies),
                gen_ai__usage__output_tokens=sum(reply.tokens_out for reply in replies),
                rag_lab__cost_usd=sum(reply.cost_usd for reply in replies),
                rag_lab__calls=len(replies),
            )
            call.set_text("gen_ai.prompt", "\n\n".join(one.content for request in requests for one in request.messages))
            call.set_text("gen_ai.completion", "\n\n".join(reply.text for reply in replies))
        return replies


def most_usd(model: Any, request: protocols.ChatRequest) -> float:
    """Return the most that one call of `model` can cost by the price table; 0 for a model that costs nothing."""
    found = prices.price(model.provider, model.name) if getattr(model, "priced", False) else None
    if found is None:
        return 0.0
    return found.cost_usd(
        truncation.request_tokens(request), protocols.with_least_thinking(model, request).most_tokens_out
    )


def chat_model(model: str | Any, purpose: str = "") -> protocols.ChatModel:
    """Return the chat model of this name, e.g. `llamacpp:smollm2`, or the object that is given, as one.

    Nothing is loaded before its first call. In a sweep its calls are entered in the run's ledger, under `purpose`: the
    stage or metric that they serve.
    """
    model = failover.choose_model(providers.CHAT_MODELS, model, partial(model_of, providers.CHAT_MODELS))
    found = model_of(providers.CHAT_MODELS, model)
    ledger, payer = environment_ledger()
    if not ledger and not is_traced():
        return cast(protocols.ChatModel, found)
    return MeteredChat(found, model if isinstance(model, str) else repr(found), ledger, payer, purpose)


def spec_of(model: object) -> str:
    """Return the name by which a shared model was asked for, or '' for a model of another origin."""
    inner = getattr(model, "inner", model)  # metered, or remembering what it was asked
    return next((name for (_, name, _), known in _NAMED.items() if known is inner), "")


def model_of(kind: Kind, model: str | Any) -> Any:
    """Return the one shared model of this kind for a name, or for an object; see `chat_model`.

    Of `first | second` it is the first that answers; see `failover`.
    """
    model = failover.choose_model(kind, model, partial(model_of, kind))
    with _LOCK:
        if not isinstance(model, str):
            at = (kind.name, id(model))
            if at not in _GIVEN:
                _GIVEN[at] = (model, custom_models.object_model(kind, model))
            return _GIVEN[at][1]
        target = (
            None if providers.split_name(model, kind)[0] in kind.built_in else custom_models.custom_target(kind, model)
        )
        key = (kind.name, model, "" if target is None else source_digest(target))
        if key not in _NAMED and target is None:
            spec = providers.ModelSpec.parse(model, kind)
            provider = providers.providers_of(kind)[spec.provider]
            made = _target(provider.target)(spec.name, **spec.arguments(provider))
            _NAMED[key] = hosted(kind, model, made)
        elif key not in _NAMED:
            _NAMED[key] = custom_models.named_model(kind, model, target)
        return _NAMED[key]


# Each returns the model of a name, e.g. `sentence_transformers:minilm`, or of an object; see `chat_model`.
embedder: Callable[[Any], protocols.Embedder] = partial(model_of, providers.EMBEDDERS)


def scorer(role: str, model: str | Any) -> protocols.PairScorer:
    """Return the model of this name that scores pairs in a role of `providers.SCORERS`; see `chat_model`."""
    return cast(protocols.PairScorer, model_of(providers.SCORERS[role], model))


def _target(text: str) -> Callable[..., Any]:
    module, _, name = text.partition(":")
    found: Callable[..., Any] = attrgetter(name)(importlib.import_module(module))
    return found


def provider_problem(name: str, provider: providers.Provider) -> str:
    """Return what keeps a provider from working here, in one sentence, or ''. No weights are loaded."""
    if problem := failover.missing(name, provider):
        return problem
    if provider.problem:
        return str(_target(provider.problem)())
    return requirements.problem_of(partial(weights.packaged, provider.packaged)) if provider.packaged else ""
