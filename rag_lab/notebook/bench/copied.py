"""A setting as text to paste elsewhere."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import yaml

from rag_lab.config import PipelineConfig
from rag_lab.notebook.bench.toggles import differing_keys


def as_yaml(config: PipelineConfig) -> str:
    """Return a YAML file that `PipelineConfig.load` reads back: what differs from the defaults."""
    return "# what differs from the defaults\n" + yaml.safe_dump(nested(config), sort_keys=False, allow_unicode=True)


def nested(config: PipelineConfig) -> dict[str, Any]:
    """Return what differs from the defaults, by section, as `PipelineConfig.parse` reads it."""
    found: dict[str, Any] = {}
    for key, value in differing_keys(PipelineConfig(), config).items():
        *sections, last = key.split(".")
        place = found
        for section in sections:
            place = place.setdefault(section, {})
        place[last] = value
    return found


def as_python(config: PipelineConfig, documents: str, places: Collection[str] = ()) -> str:
    """Return the pipeline as a line of Python.

    Args:
        config: the setting.
        documents: how the documents are written in Python.
        places: of the pipeline that hold objects, which no text can hold.
    """
    changes = differing_keys(PipelineConfig(), config)
    lines = "".join(f"    {key!r}: {value!r},\n" for key, value in changes.items())
    replaced = f".replace({', '.join(f'{place}=...' for place in places)})" if places else ""
    return f"rl.Pipeline({documents})" + (f".set({{\n{lines}}})" if lines else "") + replaced
