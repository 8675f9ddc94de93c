"""What a metric with a cut-off cannot compare: rankings of which it sees different depths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rag_lab.config import PipelineConfig
from rag_lab.evaluation.shallow import ranks_seen


def not_compared(metric: str, configs: Mapping[Any, PipelineConfig], variants: Iterable[Any]) -> str:
    """Return why variants are not compared in a metric, or "": one whose pipeline is not known is compared."""
    seen = {ranks_seen(metric, configs[variant]) for variant in variants if variant in configs}
    depths = sorted(depth for depth in seen if depth is not None)
    if len(depths) < 2:
        return ""
    return f"not compared: {metric} sees {depths[0]} ranks of one and {depths[-1]} of the other"
