"""Which of several models plays a role: the first that answers a check; and why another cannot be used.

It is chosen before the role's first call, and a pipeline keeps it: the answers of a variant are one model's, and are
remembered by that model's identity. What fails later fails; the next start of the same command chooses again.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

from rag_lab._kit.machine import Hung, timed
from rag_lab._kit.registry import Kind
from rag_lab.errors import ModelError
from rag_lab.models import config, options, providers, requirements, weights

CHECK_S = 2.0
_LOG = logging.getLogger(__name__)
_HOLDS_S = 60.0  # the roles and variants of one process then agree, and a server that is off costs two seconds once
_chosen: dict[tuple[str, str], tuple[str, float]] = {}  # kind and text: a name, and when it was chosen
_chosen_of: dict[str, list[str]] = {}
_LOCK = threading.Lock()


@runtime_checkable
class Checkable(Protocol):
    """A model that can say why it cannot be asked now."""

    def problem(self, within_s: float) -> str:
        """Return the sentence, or ''; a server that has not answered within the time does not answer."""


def missing_requirement(kind: Kind, text: str) -> str:
    """Return what this machine lacks for the model `text`, in one sentence, or ''; no server is asked."""
    if providers.split_name(text, kind)[0] not in kind.built_in:
        return ""
    spec = providers.ModelSpec.parse(text, kind)
    provider = providers.providers_of(kind)[spec.provider]
    if found := missing(spec.provider, provider, str(spec.options.get("base_url", ""))):
        return found
    if not provider.is_server:
        try:
            weights.find(spec.name)
        except ModelError as error:
            return str(error)
    return ""


def why_unavailable(kind: Kind, text: str, model: Any) -> str:
    """Return why the model `text` cannot be asked now, in one sentence, or ''; no answer is waited for longer.

    A server is asked whether it is there, weights of the hub whether they can be had.
    """

    def require_weights() -> str:
        provider, name, _ = providers.split_name(text, kind)
        if provider in kind.built_in and (source := weights.find(name)).on_hub:
            source.digest()
        return ""

    try:
        if problem := missing_requirement(kind, text):
            return problem
        return model.problem(CHECK_S) if isinstance(model, Checkable) else timed(require_weights, CHECK_S)
    except Hung as error:
        return f"It {error}."
    except ModelError as error:
        return str(error)


def missing(name: str, provider: providers.Provider, base_url: str = "") -> str:
    """Return what is not installed or not set for a provider, or ''. A server on this machine needs no key."""
    return (
        provider.missing
        or ("" if options.on_loopback(base_url) else requirements.missing_key(provider.env))
        or (requirements.cuda_problem(name) if provider.needs_cuda else "")
    )


def choose_model(kind: Kind, text: str, make: Callable[[str], Any]) -> str:
    """Return the first model of `text` that answers within two seconds; the first, which will say why, if none does.

    `text` is `first | second`, or one name, which is returned as it is.
    """
    if not config.is_failover(text):
        return text
    with _LOCK:
        name, when = _chosen.get((kind.name, text), ("", 0.0))
        if not name or time.monotonic() - when > _HOLDS_S:
            names = config.alternatives(text)
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
