"""From a model's name to the model: one shared instance for each name, so that weights load once.

Where a name stands, an object can stand, too: a custom model, or one of LangChain's. Calls of a chat model are spans,
and in a sweep they are entered in its ledger, if no limit forbids them: the sweep sets the environment of a variant's
kernel, and stages and models know nothing of it.

Of several models for a role the first that answers is chosen before the first call, and a pipeline keeps it: answers of
a variant are remembered by one model's identity. What fails later fails; the next start chooses again. Next to a text
that a packaged chat model wrote stands what to set instead on this machine.
"""

import importlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import Any, cast
from urllib.parse import urlsplit

from rag_lab._kit.digest import source_digest
from rag_lab._kit.machine import Hung, timed
from rag_lab._kit.observability import is_traced, span
from rag_lab._kit.registry import Kind
from rag_lab.errors import ModelError, RagLabError
from rag_lab.memory.ledger import Caller, Ledger, Made, environment_ledger
from rag_lab.models import config, custom_models, prices, protocols, providers, requirements, truncation, weights
from rag_lab.models.hosted import hosted

_WAIT_S = 0.2
_NAMED: dict[tuple[str, str, str], Any] = {}  # kind, name, digest of the source: an edited one is another one
_GIVEN: dict[tuple[str, int], tuple[Any, Any]] = {}  # kind, address: the object, held so that it keeps that, and ours
_LOCK = threading.Lock()


CHECK_S = 2.0
_LOG = logging.getLogger(__name__)
_HOLDS_S = 60.0  # the roles and variants of one process then agree, and a server that is off costs two seconds once
_chosen: dict[tuple[str, str], tuple[str, float]] = {}  # kind and text: a name, and when it was chosen
_chosen_of: dict[str, list[str]] = {}
_CHOOSING = threading.Lock()


def missing_requirement(kind: Kind, text: str) -> str:
    """Return what this machine lacks for the model `text`, in one sentence, or ''; no server is asked."""
    if providers.split_name(text, kind)[0] not in kind.built_in:
        return ""
    spec = providers.ModelSpec.parse(text, kind)
    provider = providers.providers_of(kind)[spec.provider]
    found = missing(spec.provider, provider, str(spec.options.get("base_url", "")))
    if found or provider.is_server or (found := requirements.problem_of(partial(weights.find, spec.name))):
        return found
    module, _, check = provider.check.partition(":")
    return str(getattr(import_module(module), check)(spec.name)) if check else ""


def why_unavailable(kind: Kind, text: str, model: Any) -> str:
    """Return why the model `text` cannot be asked now, in one sentence, or ''; no answer is waited for longer."""

    def require_weights() -> str:
        provider, name, _ = providers.split_name(text, kind)
        if provider in kind.built_in and (source := weights.find(name)).on_hub:
            source.digest()
        return ""

    try:
        if problem := missing_requirement(kind, text):
            return problem
        return str(model.problem(CHECK_S)) if hasattr(model, "problem") else timed(require_weights, CHECK_S)
    except Hung as error:
        return f"It {error}."
    except ModelError as error:
        return str(error)


def missing(name: str, provider: providers.Provider, base_url: str = "") -> str:
    """Return what is not installed or not set for a provider, or ''. A server on this machine needs no key."""
    return (
        provider.missing
        or ("" if requirements.on_loopback(base_url) else requirements.missing_key(provider.env))
        or (requirements.cuda_problem(name) if provider.needs_cuda else "")
    )


def choose_model(kind: Kind, text: Any, make: Callable[[str], Any]) -> Any:
    """Return the first model of `first | second` that answers within two seconds, else the first; one as it is."""
    names = config.alternatives(text) if isinstance(text, str) else ()
    if len(names) < 2:
        return text
    with _CHOOSING:
        name, when = _chosen.get((kind.name, text), ("", 0.0))
        if not name or time.monotonic() - when > _HOLDS_S:
            for name, model in [(name, make(name)) for name in names]:
                if not (problem := why_unavailable(kind, name, model)):
                    break
                _LOG.warning("%s does not answer: %s", name, problem)
            else:
                name = names[0]
                _LOG.warning("None of %s answers; %s is asked all the same.", ", ".join(names), name)
            _chosen[kind.name, text] = (name, time.monotonic())
            if name not in _chosen_of.setdefault(text, []):
                _chosen_of[text].append(name)
    return name


def chosen_models(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return, of those texts that name several models, which of them were chosen in this process."""
    return {text: list(_chosen_of[text]) for text in dict.fromkeys(texts) if text in _chosen_of}


KEY = "models.generation"
_PORT_OF_OLLAMA = 11434


def small_model_note(spec: object, what: str = "this") -> str:
    """Return the note on `what` this chat model wrote; '' for any but the packaged ones."""
    if not is_small_model(spec):
        return ""
    return (
        f"A toy model wrote {what}: the packaged SmolLM2 (135 million parameters) shows that everything runs, and is "
        f"often wrong. {better_model()}"
    )


def is_small_model(spec: object) -> bool:
    """Tell whether a configuration's chat model is a packaged one; what is no name was brought by the user."""
    chat = providers.providers_of(providers.CHAT_MODELS)
    names = [(provider, known.packaged) for provider, known in chat.items() if known.packaged]
    with suppress(ModelError):
        return isinstance(spec, str) and providers.split_name(spec, providers.CHAT_MODELS)[:2] in names
    return False


def better_model() -> str:
    """Return what to set on this machine for a model worth asking, as a sentence; no key is repeated."""
    chat = providers.providers_of(providers.CHAT_MODELS)
    if not requirements.missing_key(chat["gemini"].env):
        return f"Its key is set here, so take Gemini: --set {KEY}={chat['gemini'].example}"
    ollama = chat["ollama"].example
    port = None
    with suppress(ValueError):
        port = urlsplit(os.environ.get("OPENAI_BASE_URL", "")).port
    if os.environ.get("OLLAMA_HOST") or port == _PORT_OF_OLLAMA:
        return f"An Ollama server is named here, so take a model of it: --set {KEY}={ollama}"
    if os.environ.get("OPENAI_BASE_URL"):
        return f"OPENAI_BASE_URL is set here, so take a model of that server: --set {KEY}=openai:NAME"
    if os.environ.get("OPENAI_API_KEY"):
        return f"A key is set here, so take OpenAI: --set {KEY}=openai:gpt-4o-mini"
    # torch is loaded for the second question alone
    if not requirements.missing_package("unsloth", "unsloth") and not requirements.cuda_problem("unsloth"):
        return f"There is a GPU here, so take: --set {KEY}={chat['unsloth'].example}"
    install = "" if shutil.which("ollama") else "install Ollama (https://ollama.com), "
    return (
        f"No key and no GPU is set up here; {install}run `rag-lab models pull {ollama}`, then take --set {KEY}={ollama}"
    )


def booked(model: protocols.ChatModel, purpose: str) -> protocols.ChatModel:
    """Return `model` with its calls booked under another purpose, where they are booked."""
    return replace(model, purpose=purpose) if isinstance(model, MeteredChat) else model


@dataclass(eq=False)
class MeteredChat:
    """A chat model whose calls are spans, entered in `ledger` for `payer` and `purpose` (a stage or a metric)."""

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
        """Return one reply for each request, in order; what fits no limit waits for others to turn out cheaper."""
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
    """Return the chat model of this name, e.g. `llamacpp:smollm2`, or an object as one; it loads at its first call.

    In a sweep its calls are entered in the run's ledger, under `purpose`: the stage or metric that they serve.
    """
    model = choose_model(providers.CHAT_MODELS, model, partial(model_of, providers.CHAT_MODELS))
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
    """Return the one shared model of this kind for a name (see `choose_model`), or for an object; see `chat_model`."""
    model = choose_model(kind, model, partial(model_of, kind))
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
    if problem := missing(name, provider):
        return problem
    if provider.problem:
        return str(_target(provider.problem)())
    return requirements.problem_of(partial(weights.packaged, provider.packaged)) if provider.packaged else ""
