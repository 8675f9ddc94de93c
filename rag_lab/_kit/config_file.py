"""What is read from files of YAML."""

from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from rag_lab.errors import ConfigError

MAX_BYTES = 2_000_000
MAX_VALUES = 200_000  # with what aliases repeat: a few lines can spell millions
MAX_DEPTH = 50
_TOO_LONG = f"it has more than {MAX_BYTES:,} bytes; write less"
_TOO_DEEP = f"values stand more than {MAX_DEPTH} deep; nest them less"

_STARTS, _ENDS = yaml.CollectionStartEvent, yaml.CollectionEndEvent
_OF_C = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Checks(yaml.SafeLoader if TYPE_CHECKING else object):  # type: ignore[misc]
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
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is not text; quote it", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found

    def construct_text(self, node: Any) -> str:
        text: str = self.construct_scalar(node)
        text.encode()  # an escape can spell half of a surrogate pair, which cannot be written
        return text


class _Loader(_Checks, yaml.SafeLoader):
    """Of Python, which says best what is wrong."""


class _FastLoader(_Checks, _OF_C):  # type: ignore[misc,valid-type]
    """Twenty times as fast, where it is there; it must not see values that stand deep, which would end the process."""


for _each in (_Loader, _FastLoader):
    _each.add_constructor("tag:yaml.org,2002:str", _each.construct_text)


def _refuse_huge(node: Any, known: dict[Any, int], above: tuple[Any, ...]) -> int:
    """Return how many values `node` holds, counting what an alias names each time."""
    if node in above:
        raise yaml.constructor.ConstructorError(None, None, "an alias names what it stands in", node.start_mark)
    if len(above) > MAX_DEPTH:
        raise yaml.constructor.ConstructorError(None, None, _TOO_DEEP, node.start_mark)
    if node not in known:
        pairs = isinstance(node, yaml.MappingNode)
        inner = [each for pair in node.value for each in pair] if pairs else node.value
        parts = inner if isinstance(inner, list) else []
        known[node] = 1 + sum(_refuse_huge(each, known, (*above, node)) for each in parts)
    if known[node] > MAX_VALUES:
        reason = f"more than {MAX_VALUES:,} values, counting what aliases repeat; write fewer"
        raise yaml.constructor.ConstructorError(None, None, reason, node.start_mark)
    return known[node]


def parse_yaml(text: str) -> Any:
    """Return what YAML holds, None where it is empty; a ValueError says what is wrong, and on which line if known."""
    if len(text) > MAX_BYTES:
        raise ValueError(_TOO_LONG)
    try:
        with suppress(yaml.YAMLError, ValueError):
            changes = (isinstance(e, _STARTS) - isinstance(e, _ENDS) for e in yaml.parse(text, _OF_C))
            if all(depth <= MAX_DEPTH for depth in accumulate(changes)):
                return yaml.load(text, _FastLoader)  # noqa: S506 - made of the safe one
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
    return dict(yaml.load(path.read_bytes(), _OF_C))  # noqa: S506 (safe)


def read_mapping(path: Path | str) -> dict[str, Any]:
    """Return the mapping that a YAML file holds, empty for an empty file; raise a `ConfigError` for anything else."""
    data = read_yaml(path)
    if data is not None and not isinstance(data, dict):
        raise ConfigError(f"{path} must hold a mapping of keys to values, not a {type(data).__name__}.")
    return data or {}
