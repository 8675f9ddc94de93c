"""`--set key=value`: dotted keys of the pipeline, values as YAML writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from rag_lab.errors import ConfigError


def parse_settings(settings: Iterable[str]) -> dict[str, Any]:
    """Return dotted keys and values; `rerank.final_k=3` gives a number, `query.hyde=none` a text.

    Raises:
        ConfigError: naming every setting that is no `key=value`.
    """
    changes: dict[str, Any] = {}
    problems = []
    for setting in settings:
        key, equals, value = setting.partition("=")
        try:
            if not equals or not key.strip():
                raise ValueError
            changes[key.strip()] = yaml.safe_load(value)
        except (ValueError, yaml.YAMLError):
            problems.append(f"--set takes key=value, got {setting!r}; write for instance --set rerank.final_k=3")
    if problems:
        raise ConfigError("; ".join(problems))
    return changes
