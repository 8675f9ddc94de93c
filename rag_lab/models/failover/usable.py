"""What keeps a named model from being used: on this machine, and of its server at present."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from rag_lab._kit.process import Hung, timed
from rag_lab._kit.registry import Kind
from rag_lab.errors import ModelError
from rag_lab.models.options import on_loopback
from rag_lab.models.providers import Provider, providers_of
from rag_lab.models.requirements import cuda_problem, missing_key
from rag_lab.models.spec import ModelSpec, split_name
from rag_lab.models.weights import find

CHECK_S = 2.0


@runtime_checkable
class Checkable(Protocol):
    """A model that can say why it cannot be asked now."""

    def problem(self, within_s: float) -> str:
        """Return the sentence, or ''; a server that has not answered within the time does not answer."""


def lack(kind: Kind, text: str) -> str:
    """Return what this machine lacks for the model `text`, in one sentence, or ''; no server is asked.

    Raises:
        ModelError: if a built-in provider's name or options are malformed.
    """
    if split_name(text, kind)[0] not in kind.built_in:
        return ""
    spec = ModelSpec.parse(text, kind)
    provider = providers_of(kind)[spec.provider]
    if found := missing(spec.provider, provider, str(spec.options.get("base_url", ""))):
        return found
    if not provider.is_server:
        try:
            find(spec.name)
        except ModelError as error:
            return str(error)
    return ""


def silence(kind: Kind, text: str, model: Any) -> str:
    """Return why the model `text` cannot be asked now, in one sentence, or ''; no answer is waited for longer.

    A server is asked whether it is there, weights of the hub whether they can be had. Another model is taken at its
    word.
    """
    try:
        if problem := lack(kind, text):
            return problem
        if isinstance(model, Checkable):
            return model.problem(CHECK_S)
        return timed(lambda: _unhad(kind, text), CHECK_S)
    except Hung as error:
        return f"It {error}."
    except ModelError as error:
        return str(error)


def _unhad(kind: Kind, text: str) -> str:
    """Raise a `ModelError` where weights of the hub are neither here nor to be had."""
    provider, name, _ = split_name(text, kind)
    if provider in kind.built_in and (source := find(name)).on_hub:
        source.digest()
    return ""


def missing(name: str, provider: Provider, base_url: str = "") -> str:
    """Return what is not installed or not set for a provider, or ''. A server on this machine needs no key."""
    return (
        provider.missing
        or ("" if on_loopback(base_url) else missing_key(provider.env))
        or (cuda_problem(name) if provider.needs_cuda else "")
    )
