"""From the name of a model of one's own, or from an object, to that model as ours.

It is an entry point of a package, `module:Class` or `langchain:module:factory`.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from rag_lab._kit.digest import source_digest
from rag_lab._kit.module_files import modules_folder
from rag_lab._kit.registry import FACTORY, Kind, Module, construct, from_object, importing, installed, parse_parameters
from rag_lab.errors import ConfigError, ModelError, unknown_name
from rag_lab.models.own_models import OwnChat, OwnEmbedder, OwnScorer
from rag_lab.models.providers import CHAT_MODELS, EMBEDDERS
from rag_lab.models.spec import split_name


def own_target(kind: Kind, text: str) -> Any:
    """Import the class, the function or the factory that names a model which is not built in.

    Raises:
        ModelError: if there is none, or it does not import.
    """
    provider = split_name(text, kind)[0]
    try:
        if provider in installed(kind.group):
            return kind.load(provider)
        module = text.removeprefix(FACTORY).partition(":")[0]
        if not _is_there(module):
            unknown = unknown_name(f"{kind.name} provider", module, kind.names())
            raise ModelError(f"{unknown} One of your own is named module:Class, with its file in {modules_folder()}.")
        return kind.load(kind.check(text).partition("?")[0])
    except (ConfigError, ValueError) as error:
        raise ModelError(str(error)) from None


def _is_there(module: str) -> bool:
    top = module.partition(".")[0]
    if top == "__main__":
        return True
    is_beside = any((modules_folder() / name).exists() for name in (top, f"{top}.py"))
    return is_beside or (top.isidentifier() and find_spec(top) is not None)


def named_model(kind: Kind, text: str, target: Any) -> Any:
    """Return the model that `target` makes, as ours.

    A class of a package takes `name` beside its other parameters, a function of a package the name and the options.

    Raises:
        ModelError: if it cannot be made, or is no model of this kind.
    """
    provider, name, _ = split_name(text, kind)
    what = f"{kind.name} {text.partition('?')[0]!r}"
    try:
        parameters = parse_parameters(text)
        with importing(what):
            if provider in installed(kind.group):
                parameters = {"name": name, **parameters}
            is_called = text.startswith(FACTORY) or (provider in installed(kind.group) and not isinstance(target, type))
            made = target(**parameters) if is_called else construct(target, parameters, what, kind.call)
            return _as_ours(kind, Module(text, made, source_digest(target)), what)
    except ConfigError as error:
        raise ModelError(str(error)) from error


def given_model(kind: Kind, given: Any) -> Any:
    """Return an object in memory, one of LangChain's too, as ours.

    Raises:
        ModelError: if it is no model of this kind, or could not be told from another.
    """
    if type(given).__module__.startswith("rag_lab."):
        return given
    what = f"{kind.name} {type(given).__qualname__}"
    try:
        module = Module(what, given, "") if is_langchain(given) else from_object(given, kind)
        return _as_ours(kind, module, what)
    except ConfigError as error:
        raise ModelError(str(error)) from error


def _as_ours(kind: Kind, module: Module, what: str) -> Any:
    with importing(what):
        return _wrapped(kind, module, what)


def _wrapped(kind: Kind, module: Module, what: str) -> Any:
    if type(module.value).__module__.startswith("rag_lab."):
        return module.value
    if is_langchain(module.value):
        from rag_lab.models.remote.langchain_models import adapted

        module = replace(module, value=adapted(kind, module, what))
        if kind is CHAT_MODELS:
            return module.value
    elif module.name.startswith(FACTORY):
        raise ConfigError(f"The {what} returns {type(module.value).__name__}, which is none of LangChain's models.")
    if kind is CHAT_MODELS:
        return OwnChat(module, what)
    return OwnEmbedder(module, what) if kind is EMBEDDERS else OwnScorer(module, what)


def is_langchain(made: Any) -> bool:
    """Tell whether an object is of a class that LangChain's packages define, or that extends one."""
    return any(base.__module__.partition(".")[0] == "langchain_core" for base in type(made).__mro__)
