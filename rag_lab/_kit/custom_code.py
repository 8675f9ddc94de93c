"""Calling custom code: where it raises, hangs or returns rubbish, only that call is lost."""

import math
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from rag_lab._kit.machine import Hung, timed
from rag_lab._kit.registry import Module, module_file, opened_files
from rag_lab.errors import ConfigError

TIMEOUT_S = 120.0  # of one call, where the module names no other
BUILD_TIMEOUT_S = 3600.0  # of what is done once for a corpus
_HUNG_IN_A_ROW = 3  # calls, after which no other is made
_PLAIN = (str, int, float, bool, tuple, frozenset, type(None))


class CustomCodeError(Exception):
    """Why one call gave nothing that can be used; the message is the reason that the record shows."""


class CustomCode:
    """A custom module, called.

    What it may say of itself, as attributes: `version` (an int), `timeout_s` of a call, `deterministic` (True unless it
    says False; its first call is then made twice and compared), `files` (those that it reads, beside its own).

    Args:
        module: what was found under its name, or passed as an object.
        what: how sentences call it: `reranker 'shortest:Shortest'`.
        method: the name of what is called; the object itself where None.
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
        self.value, self.what, self._source = module.value, what, module.source
        self._callable: Any = getattr(self.value, method, None) if method else self.value
        self._timeout_s = float(getattr(self.value, "timeout_s", timeout_s))
        self._is_deterministic = is_compared and bool(getattr(self.value, "deterministic", True))
        self._files = tuple(getattr(self.value, "files", ()))
        self._n_hung = 0
        self._is_tried = False
        file = module_file(self.value)
        self._where = f" ({file})" if file else ""
        if not callable(self._callable):
            needed = f"a method {method}" if method else "to be called: a function, or a class with __call__"
            raise ConfigError(f"The {what} needs {needed}; see docs/adding_a_module.md.")

    def identity(self) -> Mapping[str, Any]:
        """Return what can change the results: source, version, parameters, and the files that it names."""
        parameters: dict[str, Any] = {}
        if callable(identity := getattr(self.value, "identity", None)) and not isinstance(self.value, type):
            parameters = dict(identity())
        elif is_dataclass(self.value) and not isinstance(self.value, type):
            values = {each.name: getattr(self.value, each.name) for each in fields(self.value)}
            for name, value in values.items():
                if not isinstance(value, _PLAIN):
                    raise ConfigError(
                        f"The parameter {name} of the {self.what} is a {type(value).__name__}, whose results could not "
                        "be told apart; use text, numbers, true or false, or a tuple of them."
                    )
            parameters = {name: repr(value) for name, value in values.items()}
        return {
            "own": getattr(self.value, "__qualname__", type(self.value).__qualname__),
            "source": self._source,
            "version": getattr(self.value, "version", 0),
            "parameters": parameters,
            "files": {str(path): sha256(path.read_bytes()).hexdigest() for path in self._named_files()},
        }

    def call(self, *arguments: Any, accept: Callable[[Any], Any]) -> Any:
        """Call it and return what `accept` makes of the result.

        Raises:
            CustomCodeError: if it raised, hung, or returned what `accept` refuses by a `CustomCodeError`.
            ConfigError: if it reads files that it does not name, or its second run differs though it says otherwise.
        """
        if self._n_hung >= _HUNG_IN_A_ROW:
            raise CustomCodeError(f"the {self.what} was not called, since it hung {self._n_hung} times in a row")
        if self._is_tried:
            return accept(self._timed(arguments))
        self._is_tried = True
        with opened_files() as opened:
            returned = self._timed(arguments)
        self._check_files(opened - {each.resolve() for each in arguments if isinstance(each, Path)})
        first = accept(returned)  # may open files of ours
        if self._is_deterministic and accept(self._timed(arguments)) != first:
            raise ConfigError(
                f"The {self.what}{self._where} says that it is deterministic, and its second run differs; "
                "fix its seed, or add `deterministic = False`."
            )
        return first

    def built(self, *arguments: Any) -> "CustomCode":
        """Return this code with what it makes of `arguments`, within `build_timeout_s`, called in its place."""
        limit_s = float(getattr(self.value, "build_timeout_s", BUILD_TIMEOUT_S))
        with opened_files() as opened:
            result = self._timed(arguments, limit_s)
        self._check_files(opened)
        if not callable(result):
            raise CustomCodeError(f"the {self.what} built {type(result).__name__}, which cannot be called")
        ready = copy(self)
        ready._callable = result
        return ready

    def _timed(self, arguments: tuple[Any, ...], limit_s: float | None = None) -> Any:
        try:
            value = timed(lambda: self._callable(*arguments), limit_s or self._timeout_s)
        except Hung as error:
            self._n_hung += 1
            name = "build_timeout_s" if limit_s else "timeout_s"
            raise CustomCodeError(f"the {self.what} {error}, its {name}") from None
        except Exception as error:  # whatever code of others raises
            self._n_hung = 0
            reason = " ".join(str(error).split())[:200]
            raise CustomCodeError(f"the {self.what} raised {type(error).__name__}: {reason}") from error
        self._n_hung = 0
        return value

    def _named_files(self) -> list[Path]:
        paths = [Path(module_file(self.value)).parent / name for name in self._files]
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


def numbers(values: Any, n: int, what: str) -> list[float]:
    """Return `values` as n finite floats."""
    try:
        found = [float(value) for value in values]
    except (TypeError, ValueError):
        raise CustomCodeError(f"{what} returned {type(values).__name__} where {n} numbers are due") from None
    if len(found) != n:
        raise CustomCodeError(f"{what} returned {len(found)} numbers where {n} are due")
    if not all(math.isfinite(value) for value in found):
        raise CustomCodeError(f"{what} returned {next(v for v in found if not math.isfinite(v))}, which is no number")
    return found
