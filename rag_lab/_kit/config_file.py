"""What is read from files: sections of a configuration, what is wrong with a value, YAML, and values by their type."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from yaml.constructor import ConstructorError

from rag_lab.errors import ConfigError, unknown_name
from rag_lab.redaction import redact_value

MAX_SEED = 2_000_000_000  # the number of a repeat is added, and servers take 31 bits
MAX_BYTES = 2_000_000
MAX_VALUES = 200_000  # with what aliases repeat: a few lines can spell millions
MAX_DEPTH = 50
_MAX_SHOWN_CHARS = 200  # of a value that is repeated
_TOO_LONG = f"it has more than {MAX_BYTES:,} bytes; write less"
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}
_TOO_DEEP = f"values stand more than {MAX_DEPTH} deep; nest them less"


class Section(BaseModel):
    """A part of the configuration: frozen, closed to unknown keys, and with finite numbers alone."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)


def adapter_of(shape: Any) -> TypeAdapter[Any]:
    """Return what reads and writes values of a type; made once, since it takes half a millisecond."""
    return _ADAPTERS.get(shape) or _ADAPTERS.setdefault(shape, TypeAdapter(shape))


def key_of(detail: Any) -> str:
    """Return the dotted key that is wrong; `detail` is one of `ValidationError.errors()`."""
    return ".".join(str(part) for part in detail["loc"] if part != "[key]")


def complaint(detail: Any) -> str:
    """Return what the value must be: `must be a valid integer`."""
    message: str = detail["msg"]
    return message.removeprefix("Value error, ").replace("Input should", "must")


def complaint_and_value(detail: Any) -> str:
    """Return what the value must be and what it is, without secrets; a mapping, which may be long, is not repeated."""
    if isinstance(detail["input"], dict):
        return complaint(detail)
    try:
        text = repr(_without_secrets(detail["input"]))
    except ValueError:  # Python writes no number of so many digits
        text = "a number of thousands of digits"
    return f"{complaint(detail)}, got {text if len(text) <= _MAX_SHOWN_CHARS else f'{text[:_MAX_SHOWN_CHARS]}…'}"


def faults(error: ValidationError, kind: str, allowed: Iterable[str]) -> str:
    """Return what is wrong with each value, and which keys, called `kind`, are unknown."""
    return "; ".join(
        unknown_name(kind, key_of(detail), allowed)
        if detail["type"] == "extra_forbidden"
        else f"{key_of(detail)}: {complaint_and_value(detail)}"
        for detail in error.errors()
    )


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return redact_value(value)
    if isinstance(value, dict):
        return {redact_value(str(key)): _without_secrets(inner) for key, inner in value.items()}
    return [_without_secrets(inner) for inner in value] if isinstance(value, list | tuple | set) else value


class _Loader(yaml.SafeLoader):
    """Plain values alone, and mappings whose keys are text, each once: YAML itself would keep the last of two."""

    def get_single_node(self) -> Any:
        node = super().get_single_node()
        if node is not None:
            _refuse_huge(node, {}, ())
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node in [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise ConstructorError(None, None, f"the key {key!r} is not text; quote it", key_node.start_mark)
            if key in seen:
                raise ConstructorError(None, None, f"the key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_text(self, node: Any) -> str:
        text: str = self.construct_scalar(node)
        text.encode()  # an escape can spell half of a surrogate pair, which cannot be written
        return text


_Loader.add_constructor("tag:yaml.org,2002:str", _Loader.construct_text)


def _refuse_huge(node: Any, known: dict[Any, int], above: tuple[Any, ...]) -> int:
    """Return how many values `node` holds, counting what an alias names each time."""
    if node in above:
        raise ConstructorError(None, None, "an alias names what it stands in", node.start_mark)
    if len(above) > MAX_DEPTH:
        raise ConstructorError(None, None, _TOO_DEEP, node.start_mark)
    if node not in known:
        pairs = isinstance(node, yaml.MappingNode)
        inner = [each for pair in node.value for each in pair] if pairs else node.value
        parts = inner if isinstance(inner, list) else []
        known[node] = 1 + sum(_refuse_huge(each, known, (*above, node)) for each in parts)
    if known[node] > MAX_VALUES:
        reason = f"more than {MAX_VALUES:,} values, counting what aliases repeat; write fewer"
        raise ConstructorError(None, None, reason, node.start_mark)
    return known[node]


def parse_yaml(text: str) -> Any:
    """Return what YAML holds, None where it is empty; a ValueError says what is wrong, and on which line if known."""
    if len(text) > MAX_BYTES:
        raise ValueError(_TOO_LONG)
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - made of the safe one
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{line}{error.problem}") from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())[:200]) from None
    except (ArithmeticError, AttributeError, LookupError, TypeError):  # from the library: it reads such values blindly
        raise ValueError("a value is not of the type that its tag or its form promises; write it plainly") from None


def read_yaml(path: Path | str) -> Any:
    """Return what a YAML file holds, None where it is empty."""
    try:
        if Path(path).stat().st_size > MAX_BYTES:  # before it is read
            raise ValueError(_TOO_LONG)
        return parse_yaml(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"Cannot read {path}: {error.strerror}; it must be a YAML file that is there and may be read."
        ) from None
    except ValueError as error:  # also where the bytes are not UTF-8, or a date or number is impossible
        raise ConfigError(f"{path} is not YAML that can be used: {error}") from None


def read_shipped(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file of this package, which needs no checks: twenty times as fast as the reader."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return dict(yaml.load(path.read_bytes(), loader))  # noqa: S506 (safe)


def read_mapping(path: Path | str) -> dict[str, Any]:
    """Return the mapping that a YAML file holds, empty for an empty file; raise a `ConfigError` for anything else."""
    data = read_yaml(path)
    if data is not None and not isinstance(data, dict):
        raise ConfigError(f"{path} must hold a mapping of keys to values, not a {type(data).__name__}.")
    return data or {}
