"""Which variants bound the others: they read nothing, the labelled evidence, or its whole files.

They show what can be reached. Two of them read labels, which nobody has of a new question, so none can be recommended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_lab.comparison.run_tables import RunTables
from rag_lab.config import PipelineConfig

FLOOR, CEILING = "none", "gold"  # of `answer.context`
BOUNDS: Mapping[str, str] = {
    FLOOR: "nothing",
    CEILING: "the labelled evidence",
    "document": "the files of the labelled evidence",
}
_OF_CONTEXT = ("answer.context", "answer.context_tokens", "answer.context_bytes")


def bound_arms(tables: RunTables) -> dict[str, str]:
    """Return the variants that are bounds, each with its `answer.context`."""
    contexts = {variant: config.answer.context for variant, config in tables.pipelines.items()}
    return {variant: context for variant, context in contexts.items() if context in BOUNDS}


def bound_of(tables: RunTables, variant_id: str, context: str) -> str | None:
    """Return the bound of this kind that has the reader of a variant, with its budget where there is one; else None."""
    ours = tables.pipelines.get(variant_id)
    if ours is None:
        return None
    arms = [one for one, kind in bound_arms(tables).items() if kind == context]
    found = [one for one in arms if _reader(tables.pipelines[one]) == _reader(ours)]
    return min(found, key=lambda one: _budget(tables.pipelines[one]) != _budget(ours), default=None)


def _reader(config: PipelineConfig) -> dict[str, Any]:
    """Return what decides how a context is answered from."""
    flat, is_extractive = config.flat(), config.answer.name == "extract"
    keys = [key for key in flat if key.startswith("answer.") and key not in _OF_CONTEXT]
    if is_extractive:
        keys = [key for key in keys if key.startswith(("answer.name", "answer.quote_"))] + ["models.embedding"]
    else:
        keys = [key for key in keys if not key.startswith("answer.quote_")] + ["models.generation", "seed"]
    return {key: flat[key] for key in keys}


def _budget(config: PipelineConfig) -> tuple[int, int]:
    return config.answer.context_tokens, config.answer.context_bytes
