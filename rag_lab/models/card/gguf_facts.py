"""What a GGUF file says of its model; its weights are counted, not read."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.models.card.model_card import Cache
from rag_lab.models.local.gguf.gguf_card import gguf_card
from rag_lab.models.local.gguf.gguf_conversion import stored_bytes
from rag_lab.models.local.gguf.gguf_header import gguf_metadata
from rag_lab.models.local.gguf.gguf_types import GIVEN, TYPES


@dataclass(frozen=True, slots=True)
class GgufFacts:
    """A file's own facts, and what it takes in memory where it is stored in another type."""

    parameters: int
    weights_bytes: int
    stored_as: str
    trained_tokens: int | None
    licence: str
    cache: Cache | None
    thinks: bool


def gguf_facts(path: Path, weights: str = GIVEN, kv: str = "f16") -> GgufFacts:
    """Return the facts of the file at `path`, its weights stored as `weights` and its cache as `kv`.

    Raises:
        ModelError: if it is no whole GGUF file.
    """
    from gguf import GGUFReader

    try:
        tensors = GGUFReader(path).tensors
    except (ValueError, KeyError, IndexError, OSError) as error:
        raise ModelError(f"{path.name} is not a whole GGUF file ({error}); download it again.") from error
    found = gguf_metadata(path) or {}
    return GgufFacts(
        parameters=sum(prod(tensor.shape.tolist()) for tensor in tensors),
        weights_bytes=sum(stored_bytes(tensor, weights) for tensor in tensors),
        stored_as=_most_bytes(tensors) if weights == GIVEN else weights.upper(),
        trained_tokens=_of(found, "context_length"),
        licence=str(found.get("general.license", "")),
        cache=gguf_cache(found, kv),
        thinks=gguf_card(found).thinks,
    )


def _of(found: dict[str, Any], key: str) -> int | None:
    value = found.get(f"{found.get('general.architecture')}.{key}")
    return max(value) if isinstance(value, list) else value  # some models differ from layer to layer


def gguf_cache(found: dict[str, Any], kv: str = "f16") -> Cache | None:
    """Return the cache of keys and values, stored as `kv`, by a file's head; None where that does not say."""
    layers, heads, width = (_of(found, key) for key in ("block_count", "attention.head_count", "embedding_length"))
    if not layers or not heads or not width:
        return None
    head_dim = _of(found, "attention.key_length") or width // heads
    return Cache(layers, _of(found, "attention.head_count_kv") or heads, head_dim, TYPES[kv].bits)


def _most_bytes(tensors: Any) -> str:
    """Return the type that most of the weights have."""
    n_values: dict[str, int] = {}
    for tensor in tensors:
        n_values[tensor.tensor_type.name] = n_values.get(tensor.tensor_type.name, 0) + prod(tensor.shape.tolist())
    return max(n_values, key=lambda name: n_values[name])
