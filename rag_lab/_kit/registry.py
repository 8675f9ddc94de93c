"""Where a module comes from: it is built in, an entry point of an installed package, or `module:attribute`.

Every kind of module has one `Kind`; ours and a user's come in by it, and there is no other way in. What follows a `?`
are parameters: `shortest:Shortest?keep=4`. They are the fields of a frozen dataclass, checked by their annotations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import FunctionType
from typing import Any

from rag_lab._kit.module_files import load_own, own_folder
from rag_lab._kit.parameters import check_class, construct, parse_parameters
from rag_lab._kit.source_digest import source_digest
from rag_lab.errors import ConfigError, RagLabError, nearest, unknown_name

_DOTTED = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_OWN = re.compile(rf"(?:langchain:)?{_DOTTED}:{_DOTTED}")
FACTORY = "langchain:"  # before `module:factory`: the factory is called and returns an object of LangChain's


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A module that ships with the workbench: where it is, what it is, and what it needs to be used here."""

    target: str  # module:attribute
    summary: str
    needs: str = ""  # what must be importable
    install: str = ""  # what to give pip where it is not

    @property
    def missing(self) -> str:
        """What keeps it from being used here and what to do, as a sentence, or ''."""
        if not self.needs or find_spec(self.needs) is not None:
            return ""
        return f"The package {self.needs} is not installed; run: pip install {self.install or self.needs!r}."


@dataclass(frozen=True, slots=True)
class Module:
    """What a name stands for: `made` is an instance where a class was named, else what was named itself.

    `source` is the digest of its source, which belongs into the identity of whatever uses it; it is '' of what is built
    in, which has a version of its own.
    """

    name: str
    made: Any
    source: str = ""


@dataclass(frozen=True)
class Kind:
    """One kind of module: what is built in, and the group of entry points under which packages bring more."""

    name: str  # as sentences say it: `reranker`
    group: str  # `rag_lab.rerankers`
    built_in: Mapping[str, BuiltIn] = field(default_factory=dict)
    call: str = ""  # how one is called: `__call__(self, question, passages)`

    def names(self) -> list[str]:
        """Return what can be named without a colon: what is built in, then what is installed."""
        return [*self.built_in, *(name for name in installed(self.group) if name not in self.built_in)]

    def check(self, text: str) -> str:
        """Return `text` if it can name a module of this kind; nothing is imported, so a file's text is harmless.

        Raises:
            ValueError: if it can not, as a validator of pydantic says it.
        """
        name, _, written = text.partition("?")
        if not _OWN.fullmatch(name) and name not in self.built_in and name not in self.names():
            near = nearest(name, self.names())
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise ValueError(f"must be {', '.join(self.names())} or one of your own as module:Class{hint}")
        if name in self.built_in and written:
            raise ValueError(f"{name} takes its parameters from the configuration, not from its name")
        parse_parameters(text)
        return text

    def find(self, text: str) -> Module:
        """Import what `text` names and construct it with its parameters.

        Raises:
            ConfigError: if there is no such module, it does not import, or it can not have these parameters.
        """
        name, parameters = text.partition("?")[0], parse_parameters(text)
        if name in self.built_in:
            return Module(name, self._built_in(name))
        target, what = self.load(name), f"{self.name} {name!r}"
        with importing(what):
            made = target(**parameters) if name.startswith(FACTORY) else construct(target, parameters, what, self.call)
        return Module(text, made, source_digest(target))

    def problem(self, text: str) -> str:
        """Return why what `text` names cannot be used here, in one sentence, or ''; it is imported to find out."""
        try:
            self.find(text)
        except ConfigError as error:
            return str(error)
        return ""

    def load(self, name: str) -> Any:
        """Import the class, the function or the factory that a name which is not built in stands for.

        Raises:
            ConfigError: if there is none, or it does not import.
        """
        what = f"{self.name} {name!r}"
        with importing(what):
            return _own(name.removeprefix(FACTORY), what) if ":" in name else self._installed(name)

    def _built_in(self, name: str) -> Any:
        entry = self.built_in[name]
        if entry.missing:
            raise ConfigError(f"The {self.name} {name} can not be used here: {entry.missing}")
        module, _, attribute = entry.target.partition(":")
        return getattr(import_module(module), attribute)

    def _installed(self, name: str) -> Any:
        entries = installed(self.group).get(name, ())
        if not entries:
            raise ConfigError(unknown_name(self.name, name, self.names()))
        if name in self.built_in:
            raise ConfigError(
                f"The {self.name} {name} is built in, so {package(entries[0])} can not claim its name; use another."
            )
        if len(entries) > 1:
            claims = " and ".join(f"{package(entry)} ({entry.value})" for entry in entries)
            raise ConfigError(
                f"More than one package claims the {self.name} {name!r}: {claims}; uninstall all but one."
            )
        return entries[0].load()


def own(given: Any, kind: Kind) -> Module:
    """Return an object in memory as a module: a function, an instance, or a class, which is constructed.

    Raises:
        ConfigError: if it is text, which names a module in a configuration, or a class whose instances cannot be told
            apart.
    """
    if isinstance(given, str):
        raise ConfigError(f"A {kind.name} is given as an object here, got {given!r}; name one by a key, with `set`.")
    if not isinstance(given, type) and not isinstance(given, FunctionType):
        if not hasattr(given, "identity"):
            check_class(type(given), f"{kind.name} {given!r}", kind.call)
        return Module(repr(given), given, source_digest(type(given)))
    what = f"{kind.name} {given.__name__!r}"
    return Module(given.__name__, construct(given, {}, what, kind.call), source_digest(given))


@cache
def installed(group: str) -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of a group by name; more than one where packages claim the same name."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in _all_installed().select(group=group):
        found[entry.name] = (*found.get(entry.name, ()), entry)
    return found


@cache
def _all_installed() -> Any:
    return entry_points()  # reads a file of every package, which takes long, so it is done once for all kinds


def package(entry: EntryPoint) -> str:
    """Return the name and the version of the package that an entry point comes with."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist and entry.dist.name else "an unnamed package"


def _own(name: str, what: str) -> Any:
    """Return what `module:attribute` names, in a file beside the experiment or in an installed module."""
    module, _, attribute = name.partition(":")
    if module == "__main__":
        raise ConfigError(
            f"The {what} lives in this process alone, and the kernels of a sweep cannot import it: put it into a file "
            f"beside the experiment and name it, as in 'my_file:{attribute}'."
        )
    try:
        found: Any = load_own(module) or import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # it is there, and something that it imports is not
        file = f"{module.replace('.', '/')}.py"
        raise ConfigError(f"The {what} is not there: put {file} into {own_folder()}, or install {module!r}.") from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"The {what} is not there: {module!r} has no {attribute!r}; see how it is spelt.")
        found = getattr(found, part)
    return found


@contextmanager
def importing(what: str) -> Iterator[None]:
    """Turn whatever the code of others raises, as it is imported or made, into a sentence."""
    try:
        yield
    except RagLabError:
        raise
    except (Exception, SystemExit) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(f"The {what} does not load ({type(error).__name__}: {reason}); mend its file.") from error
