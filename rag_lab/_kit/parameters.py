"""Parameters of a module: written behind its name, checked by the annotations of its frozen fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints
from urllib.parse import unquote

import yaml
from pydantic import ConfigDict, ValidationError, create_model

from rag_lab._kit.complaints import complaint_and_value, key_of
from rag_lab._kit.module_files import module_file
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.redaction import names_secret

_CHECKS = ConfigDict(arbitrary_types_allowed=True, allow_inf_nan=False)


def parse_parameters(text: str) -> dict[str, Any]:
    """Return the parameters behind the `?` of `name?key=value&key=value`, values as YAML reads them.

    Raises:
        ConfigError: for a parameter without a value, a repeated one, or a secret.
    """
    found: dict[str, Any] = {}
    for part in filter(None, text.partition("?")[2].split("&")):
        key, equals, raw = part.partition("=")
        if names_secret(key):
            raise ConfigError(f"The name of a module must hold no secret ({key!r}); let it read the environment.")
        if not equals or key in found:
            raise ConfigError(f"Parameters are written name=value, each once, joined by &; got {part!r} in {text!r}.")
        found[key] = _value(unquote(raw))
    return found


def _value(raw: str) -> Any:
    try:
        return yaml.safe_load(raw)
    except yaml.YAMLError:
        return raw


def construct(target: Any, parameters: Mapping[str, Any], what: str) -> Any:
    """Return an instance of the class `target` with these parameters, or `target` itself where it is a function.

    Args:
        target: a frozen dataclass with a `version`, or a function, which takes no parameters.
        parameters: field names and values.
        what: the module as sentences name it: `reranker 'shortest:Shortest'`.

    Raises:
        ConfigError: naming what is wrong with the class, or every parameter that is unknown or impossible.
    """
    if not isinstance(target, type):
        if parameters:
            raise ConfigError(
                f"The {what} is no class, so it takes no parameters; make it a frozen dataclass with them."
            )
        return target
    check_class(target, what)
    known = [each.name for each in fields(target) if each.init]
    unknown = [unknown_name(f"parameter of the {what}", key, known) for key in parameters if key not in known]
    if unknown:
        raise ConfigError(" ".join(unknown))
    hints = get_type_hints(target, include_extras=True)
    wanted: dict[str, Any] = {key: (hints[key], ...) for key in parameters}
    checked = create_model("Parameters", __config__=_CHECKS, **wanted)
    try:
        values = checked.model_validate(dict(parameters))
    except ValidationError as error:
        wrong = "; ".join(f"{key_of(detail)}: {complaint_and_value(detail)}" for detail in error.errors())
        raise ConfigError(f"The {what} can not have these parameters: {wrong}.") from None
    return target(**{key: getattr(values, key) for key in parameters})


def check_class(target: type, what: str) -> None:
    """Refuse a class whose instances could not be told apart, or could change.

    Raises:
        ConfigError: if it is no frozen dataclass, has no version, or a default that can be changed.
    """
    where = f"({module_file(target) or target.__module__})"
    if not is_dataclass(target) or not target.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise ConfigError(f"The {what} {where} must be a frozen dataclass; write @dataclass(frozen=True) above it.")
    if not isinstance(getattr(target, "version", None), int):
        raise ConfigError(f"The {what} {where} has no version; add `version: ClassVar[int] = 1`, to be raised by hand.")
    for each in fields(target):
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        try:
            hash(default)
        except TypeError:
            raise ConfigError(
                f"The {what} {where} has a default that can be changed, {each.name}; use a tuple or a frozenset."
            ) from None
