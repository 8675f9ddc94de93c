"""Which of several models plays a role: the first that answers a check; why another cannot be used; and a better one.

It is chosen before the role's first call, and a pipeline keeps it: the answers of a variant are one model's, and are
remembered by that model's identity. What fails later fails; the next start of the same command chooses again. Next to
a text that a packaged chat model wrote stands what to set instead on this machine.
"""

import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from rag_lab._kit.machine import Hung, timed
from rag_lab._kit.registry import Kind
from rag_lab.errors import ModelError
from rag_lab.models import config, providers, requirements, weights

CHECK_S = 2.0
_LOG = logging.getLogger(__name__)
_HOLDS_S = 60.0  # the roles and variants of one process then agree, and a server that is off costs two seconds once
_chosen: dict[tuple[str, str], tuple[str, float]] = {}  # kind and text: a name, and when it was chosen
_chosen_of: dict[str, list[str]] = {}
_LOCK = threading.Lock()


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
    """Return the first model of `text` that answers within two seconds; the first, which will say why, if none does.

    `text` is `first | second`; one name, or an object, is returned as it is.
    """
    names = config.alternatives(text) if isinstance(text, str) else ()
    if len(names) < 2:
        return text
    with _LOCK:
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
