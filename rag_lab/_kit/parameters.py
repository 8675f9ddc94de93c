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
from rag_lab._kit.wording import listing
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.redaction import names_secret

_CHECKS = ConfigDict(arbitrary_types_allowed=True, allow_inf_nan=False)
_OTHER_FORMS = ("identity", "split_text", "lazy_load", "invoke")  # of a whole stage or splitter, and of LangChain's
_SHAPE = """
    from dataclasses import dataclass
    from typing import ClassVar

    @dataclass(frozen=True)
    class {name}:
        version: ClassVar[int] = 1  # raise it where results change for a reason outside this file

        def {call}:
            ...
"""


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


def construct(target: Any, parameters: Mapping[str, Any], what: str, call: str = "") -> Any:
    """Return an instance of the class `target` with these parameters, or `target` itself where it is a function.

    Args:
        target: a frozen dataclass with a `version`, or a function, which takes no parameters.
        parameters: field names and values.
        what: the module as sentences name it: `reranker 'shortest:Shortest'`.
        call: how an instance is called, for who has not written it yet.

    Raises:
        ConfigError: naming what is wrong with the class, or every parameter that is unknown or impossible.
    """
    if not isinstance(target, type):
        if parameters:
            raise ConfigError(
                f"The {what} is no class, so it takes no parameters; make it a frozen dataclass with them."
            )
        return target
    check_class(target, what, call)
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


def check_class(target: type, what: str, call: str = "") -> None:
    """Refuse a class whose instances could not be told apart, or could change; all that it lacks is said at once.

    Args:
        target: the class.
        what: the module as sentences name it.
        call: how an instance is called: `__call__(self, question)`.

    Raises:
        ConfigError: if it is no frozen dataclass, has no version, a default that can be changed, or is not called so.
            What it has to look like stands below the sentence.
    """
    is_frozen = is_dataclass(target) and target.__dataclass_params__.frozen  # type: ignore[attr-defined]
    lacks = [] if is_frozen else ["must be a frozen dataclass"]
    lacks += [] if isinstance(getattr(target, "version", None), int) else ["has no version"]
    method = call.partition("(")[0]
    if method == "__call__" and not any({method, *_OTHER_FORMS} & vars(kind).keys() for kind in target.__mro__[:-1]):
        lacks.append("cannot be called")
    for each in fields(target) if is_dataclass(target) else ():
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        try:
            hash(default)
        except TypeError:
            lacks.append(f"has a default that can be changed, {each.name} (a tuple or a frozenset cannot)")
    if lacks:
        where = module_file(target) or target.__module__
        shape = _SHAPE.format(name=target.__name__, call=call or "__call__(self, ...)")
        instead = "Without parameters a function will do." if method == "__call__" else ""
        raise ConfigError(f"The {what} ({where}) {listing(lacks)}; it has to look like this:\n{shape}{instead}")
