"""Files that people write in YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from rag_lab.errors import ConfigError


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds, None where it is empty.

    Raises:
        ConfigError: if the file cannot be read or is not YAML.
    """
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"Cannot read {path}: {error.strerror}; it must be a YAML file that is there and may be read."
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())[:200]}") from None


def read_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping that a YAML file holds; an empty file holds an empty one.

    Raises:
        ConfigError: if the file cannot be read, is not YAML, or holds something else.
    """
    data = read_yaml(path)
    if data is not None and not isinstance(data, dict):
        raise ConfigError(f"{path} must hold a mapping of keys to values, not a {type(data).__name__}.")
    return data or {}
