"""Facts of a model's weights, read from a folder or a GGUF file without loading them."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from rag_lab._kit.machine import bytes_on_disk
from rag_lab.errors import ModelError
from rag_lab.models.local.gguf_file import gguf_card, gguf_metadata
from rag_lab.models.local.gguf_storage import GIVEN, TYPES, stored_bytes

_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")


def downloaded_folder(hub_name: str) -> Path | None:
    """Return the folder of the last download of `hub_name`; None where it holds no weights."""
    from huggingface_hub import try_to_load_from_cache

    found: Any = try_to_load_from_cache(hub_name, "config.json")  # which is fetched alone, too, to know the revision
    if not isinstance(found, str):
        return None
    folder = Path(found).parent
    return folder if any(any(folder.rglob(ending)) for ending in _WEIGHTS) else None


_HEAD_BYTES = 8  # of a safetensors file: the length of the JSON that follows
_MOST_HEAD_BYTES = 100_000_000
_PACKED = "U8"  # bitsandbytes keeps two 4-bit weights a byte


@dataclass(frozen=True, slots=True)
class Cache:
    """What a transformer keeps of each token that it has read: keys and values of every layer.

    Where a model looks back only a window in some layers (Gemma 3), or shares them, this is the most.
    """

    layers: int
    kv_heads: int
    head_dim: int
    bits: float = 16.0  # a value, the scale of its block included

    def mb(self, context_tokens: int, batch: int = 1) -> float:
        """Return MiB: 2 (keys, values) x layers x heads x dimensions x tokens x sequences at a time x bits / 8."""
        values = 2 * self.layers * self.kv_heads * self.head_dim * context_tokens * batch
        return values * self.bits / 8 / 2**20

    def formula(self, context_tokens: int, batch: int = 1) -> str:
        """Return the formula with its numbers."""
        return (
            f"2 x {self.layers} layers x {self.kv_heads} heads x {self.head_dim} dimensions x "
            f"{context_tokens:,} tokens x {batch} at a time x {self.bits:g} bits"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFacts:
    """What a folder or a file says of its weights; None is what it does not say."""

    parameters: int | None
    disk_bytes: int
    trained_tokens: int | None
    licence: str
    cache: Cache | None
    thinks: bool | None
    sees: bool | None
    context_tokens: int | None = None  # that are read of a text, by an embedding model that is set to read less
    stored_as: str = ""  # of a GGUF file, as are the bytes in memory
    weights_bytes: int = 0


def folder_facts(folder: Path) -> WeightFacts:
    """Return the facts of the weights in `folder`; no library is asked."""
    config = _json(folder / "config.json")
    text = config.get("text_config") or config
    template = _template(folder)
    return WeightFacts(
        parameters=sum(map(_parameters, folder.glob("*.safetensors"))) or None,
        disk_bytes=bytes_on_disk(folder),
        trained_tokens=text.get("max_position_embeddings"),
        context_tokens=_json(folder / "sentence_bert_config.json").get("max_seq_length"),
        licence=_licence(folder),
        cache=_cache(text),
        thinks=None if template is None else "enable_thinking" in template or "<think" in template,
        sees="vision_config" in config if config else None,
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _parameters(path: Path) -> int:
    """Return how many values the tensors of a safetensors file hold; two for a byte that packs them."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(_HEAD_BYTES))
            head = json.loads(file.read(min(length, _MOST_HEAD_BYTES)))
        tensors = [tensor for name, tensor in head.items() if name != "__metadata__"]
        return sum(prod(tensor["shape"]) * (2 if tensor["dtype"] == _PACKED else 1) for tensor in tensors)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, struct.error):
        return 0


def _cache(text: dict[str, Any]) -> Cache | None:
    layers, heads, width = (text.get(key) for key in ("num_hidden_layers", "num_attention_heads", "hidden_size"))
    if not layers or not heads or not width:
        return None
    return Cache(layers, text.get("num_key_value_heads") or heads, text.get("head_dim") or width // heads)


def _template(folder: Path) -> str | None:
    whole = folder / "chat_template.jinja"
    if whole.is_file():
        return whole.read_text(encoding="utf-8", errors="replace")
    template = _json(folder / "tokenizer_config.json").get("chat_template")
    return None if template is None else str(template)


def _licence(folder: Path) -> str:
    """Return the licence that the head of the model's README names."""
    try:
        lines = (folder / "README.md").read_text(encoding="utf-8", errors="replace").splitlines()[:60]
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("license:")), "")


def gguf_facts(path: Path, weights: str = GIVEN, kv: str = "f16") -> WeightFacts:
    """Return the facts of the file at `path`, its weights stored as `weights` and its cache as `kv`."""
    from gguf import GGUFReader

    try:
        tensors = GGUFReader(path).tensors
    except (ValueError, KeyError, IndexError, OSError) as error:
        raise ModelError(f"{path.name} is not a whole GGUF file ({error}); download it again.") from error
    found = gguf_metadata(path) or {}
    return WeightFacts(
        parameters=sum(prod(tensor.shape.tolist()) for tensor in tensors),
        weights_bytes=sum(stored_bytes(tensor, weights) for tensor in tensors),
        stored_as=_most_bytes(tensors) if weights == GIVEN else weights.upper(),
        trained_tokens=_of(found, "context_length"),
        licence=str(found.get("general.license", "")),
        cache=gguf_cache(found, kv),
        thinks=gguf_card(found).thinks,
        sees=False,
        disk_bytes=path.stat().st_size,
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
