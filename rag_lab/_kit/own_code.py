"""Calling code that somebody brought: where it raises, hangs or returns rubbish, only that call is lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from rag_lab._kit.module_files import module_file
from rag_lab._kit.opened_files import OpenedFiles
from rag_lab._kit.registry import Module
from rag_lab._kit.timed import Hung, timed
from rag_lab.errors import ConfigError

TIMEOUT_S = 120.0  # of one call, where the module names no other
BUILD_TIMEOUT_S = 3600.0  # of what is done once for a corpus
_HUNG_IN_A_ROW = 3  # calls, after which no other is made
_PLAIN = (str, int, float, bool, tuple, frozenset, type(None))


class OwnCodeError(Exception):
    """Why one call gave nothing that can be used; the message is the reason that the record shows."""


class OwnCode:
    """A module of one's own, called.

    What it may say of itself, as attributes: `version` (an int), `timeout_s` of a call, `deterministic` (True unless it
    says False; its first call is then made twice and compared), `files` (those that it reads, beside its own).

    Args:
        module: what was found under its name, or given as an object.
        what: how sentences call it: `reranker 'shortest:Shortest'`.
        method: the name of what is called; the object itself where None.
        timeout_s: of one call, where the module names no other.
        is_compared: whether its first call is made twice, where it does not say that it is not deterministic.
    """

    def __init__(
        self,
        module: Module,
        what: str,
        method: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        is_compared: bool = True,
    ) -> None:
        self.made, self.what, self._source = module.made, what, module.source
        self._method = method
        self._made_call: Any = None
        self._timeout_s = float(getattr(self.made, "timeout_s", timeout_s))
        self._is_deterministic = is_compared and bool(getattr(self.made, "deterministic", True))
        self._files = tuple(getattr(self.made, "files", ()))
        self._hung = 0
        self._is_tried = False
        if not callable(self._callable()):
            needed = f"a method {method}" if method else "to be called: a function, or a class with __call__"
            raise ConfigError(f"The {what} needs {needed}; see docs/adding_a_module.md.")

    def identity(self) -> Mapping[str, Any]:
        """Return what can change the results: source, version, parameters, and the files that it names."""
        return {
            "own": getattr(self.made, "__qualname__", type(self.made).__qualname__),
            "source": self._source,
            "version": getattr(self.made, "version", 0),
            "parameters": self._parameters(),
            "files": {str(path): sha256(path.read_bytes()).hexdigest() for path in self._named_files()},
        }

    def call(self, *arguments: Any, accept: Callable[[Any], Any]) -> Any:
        """Call it and return what `accept` makes of the result.

        The first call is made twice where it says that it is deterministic.

        Args:
            arguments: of the call.
            accept: turns what is returned into what is kept.

        Raises:
            OwnCodeError: if it raised, hung, or returned what `accept` refuses by an `OwnCodeError`.
            ConfigError: if it reads files that it does not name, or its second run differs though it says otherwise.
        """
        if self._hung >= _HUNG_IN_A_ROW:
            raise OwnCodeError(f"the {self.what} was not called, since it did not return {self._hung} times in a row")
        if self._is_tried:
            return accept(self._timed(arguments))
        self._is_tried = True
        with OpenedFiles() as opened:
            returned = self._timed(arguments)
        self._check_files(opened.paths - {each.resolve() for each in arguments if isinstance(each, Path)})
        first = accept(returned)  # may open files of ours
        if self._is_deterministic and accept(self._timed(arguments)) != first:
            raise ConfigError(
                f"The {self.what}{self._where} says that it is deterministic, and its second run differs; "
                "fix its seed, or add `deterministic = False`."
            )
        return first

    def built(self, *arguments: Any) -> OwnCode:
        """Return this code with what it makes of `arguments` called in its place.

        Raises:
            OwnCodeError: if it raised, took longer than `build_timeout_s`, or made nothing that can be called.
            ConfigError: if it reads files that it does not name.
        """
        limit_s = float(getattr(self.made, "build_timeout_s", BUILD_TIMEOUT_S))
        with OpenedFiles() as opened:
            made = self._timed(arguments, limit_s)
        self._check_files(opened.paths)
        if not callable(made):
            raise OwnCodeError(f"the {self.what} built {type(made).__name__}, which cannot be called")
        ready = copy(self)
        ready._made_call = made
        return ready

    def _callable(self) -> Any:
        if self._made_call is not None:
            return self._made_call
        return getattr(self.made, self._method, None) if self._method else self.made

    def _timed(self, arguments: tuple[Any, ...], limit_s: float | None = None) -> Any:
        try:
            value = timed(lambda: self._callable()(*arguments), limit_s or self._timeout_s)
        except Hung as error:
            self._hung += 1
            name = "build_timeout_s" if limit_s else "timeout_s"
            raise OwnCodeError(f"the {self.what} {error}, its {name}") from None
        except Exception as error:  # whatever code of others raises
            self._hung = 0
            reason = " ".join(str(error).split())[:200]
            raise OwnCodeError(f"the {self.what} raised {type(error).__name__}: {reason}") from error
        self._hung = 0
        return value

    def _parameters(self) -> Mapping[str, Any]:
        if callable(told := getattr(self.made, "identity", None)) and not isinstance(self.made, type):
            return dict(told())
        if not is_dataclass(self.made) or isinstance(self.made, type):
            return {}
        values = {each.name: getattr(self.made, each.name) for each in fields(self.made)}
        for name, value in values.items():
            if not isinstance(value, _PLAIN):
                raise ConfigError(
                    f"The parameter {name} of the {self.what} is a {type(value).__name__}, whose results could not be "
                    "told apart; use text, numbers, true or false, or a tuple of them."
                )
        return {name: repr(value) for name, value in values.items()}

    def _named_files(self) -> list[Path]:
        folder = Path(module_file(self.made)).parent
        paths = [folder / name for name in self._files]
        for path in paths:
            if not path.is_file():
                raise ConfigError(f"The {self.what}{self._where} names the file {path}, which is not there.")
        return paths

    def _check_files(self, opened: set[Path]) -> None:
        named = {path.resolve() for path in self._named_files()}
        if strangers := sorted(str(path) for path in opened - named):
            raise ConfigError(
                f"The {self.what}{self._where} reads {strangers[0]}, which it does not name: an edited file would go "
                f"unnoticed; add `files = ({Path(strangers[0]).name!r},)`."
            )

    @property
    def _where(self) -> str:
        file = module_file(self.made)
        return f" ({file})" if file else ""


def numbers(values: Any, n: int, what: str) -> list[float]:
    """Return `values` as n finite floats.

    Raises:
        OwnCodeError: if they are not n numbers, or one of them is NaN or infinite.
    """
    try:
        found = [float(value) for value in values]
    except (TypeError, ValueError):
        raise OwnCodeError(f"{what} returned {type(values).__name__} where {n} numbers are due") from None
    if len(found) != n:
        raise OwnCodeError(f"{what} returned {len(found)} numbers where {n} are due")
    if not all(math.isfinite(value) for value in found):
        raise OwnCodeError(f"{what} returned {next(v for v in found if not math.isfinite(v))}, which is no number")
    return found
