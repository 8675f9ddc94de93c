"""Files that people write in YAML, read strictly: a slip of the pen is an error instead of a value gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from rag_lab.errors import ConfigError

_MERGE = "tag:yaml.org,2002:merge"
_TEXT = "tag:yaml.org,2002:str"


class _Loader(yaml.SafeLoader):
    """Plain values alone, and mappings whose keys are text, each once: YAML itself would keep the last of two."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node in [key for key, _ in node.value if key.tag != _MERGE]:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise ConstructorError(None, None, f"the key {key!r} is not text; quote it", key_node.start_mark)
            if key in seen:
                raise ConstructorError(None, None, f"the key {key!r} stands twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def _text(loader: _Loader, node: Any) -> str:
    text: str = loader.construct_scalar(node)
    text.encode()  # an escape can spell half of a surrogate pair, which cannot be written
    return text


_Loader.add_constructor(_TEXT, _text)


def parse_yaml(text: str) -> Any:
    """Return what YAML holds, None where it is empty.

    Raises:
        ValueError: saying what is wrong, and on which line where that is known.
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - made of the safe one
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ValueError(f"{line}{error.problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())[:200]) from None


def read_yaml(path: Path | str) -> Any:
    """Return what a YAML file holds, None where it is empty.

    Raises:
        ConfigError: if the file cannot be read or is not YAML.
    """
    try:
        return parse_yaml(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"Cannot read {path}: {error.strerror}; it must be a YAML file that is there and may be read."
        ) from None
    except ValueError as error:  # also where the bytes are not UTF-8, or a date or number is impossible
        raise ConfigError(f"{path} is not YAML that can be used: {error}") from None


def read_mapping(path: Path | str) -> dict[str, Any]:
    """Return the mapping that a YAML file holds; an empty file holds an empty one.

    Raises:
        ConfigError: if the file cannot be read, is not YAML, or holds something else.
    """
    data = read_yaml(path)
    if data is not None and not isinstance(data, dict):
        raise ConfigError(f"{path} must hold a mapping of keys to values, not a {type(data).__name__}.")
    return data or {}
