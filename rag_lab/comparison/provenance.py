"""What a manifest says of how the run was made, as names and texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_lab.runs.manifest_text import plain_text

_ELSEWHERE = ("variants", "problems", "spent")  # entries of the manifest that the report shows elsewhere


def provenance(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what the manifest says as (name, text) pairs; what has a section of its own is left out."""
    facts = []
    for key, value in manifest.items():
        if key not in _ELSEWHERE:
            facts += _facts(key, value)
    return facts


def _facts(name: str, value: Any) -> list[tuple[str, str]]:
    """Flatten one entry: a mapping of plain values is one line, deeper ones are a line each."""
    if isinstance(value, Mapping) and any(isinstance(inner, Mapping | list) for inner in value.values()):
        return [fact for key, inner in value.items() for fact in _facts(f"{name}: {key}", inner)]
    return [(name, plain_text(value, "not known"))]
