"""Facts of a model's weights, read from a folder or a GGUF file without loading them."""

import json
import struct
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from rag_lab._kit.machine import bytes_on_disk
from rag_lab.errors import ModelError
from rag_lab.models.local.gguf_file import gguf_card, gguf_metadata
from rag_lab.models.local.gguf_storage import GIVEN, TYPES, stored_bytes

_WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
_HEAD_BYTES = 8  # of a safetensors file: the length of the JSON that follows
_MOST_HEAD_BYTES = 100_000_000
_PACKED = "U8"  # bitsandbytes keeps two 4-bit weights a byte


def downloaded_folder(hub_name: str) -> Path | None:
    """Return the folder of the last download of `hub_name`; None where it holds no weights."""
    from huggingface_hub import try_to_load_from_cache

    found: Any = try_to_load_from_cache(hub_name, "config.json")  # which is fetched alone, too, to know the revision
    if not isinstance(found, str):
        return None
    folder = Path(found).parent
    return folder if any(any(folder.rglob(ending)) for ending in _WEIGHTS) else None


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


def folder_facts(folder: Path) -> dict[str, Any]:
    """Return what a folder says of its weights, by the card's fields, None where it does not; no library is asked."""
    config, template = _json(folder / "config.json"), folder / "chat_template.jinja"
    text = config.get("text_config") or config
    written: str | None = _json(folder / "tokenizer_config.json").get("chat_template")
    if template.is_file():
        written = template.read_text(encoding="utf-8", errors="replace")
    layers, heads, width = (text.get(key) for key in ("num_hidden_layers", "num_attention_heads", "hidden_size"))
    cache, licence = None, ""
    if layers and heads and width:
        cache = Cache(layers, text.get("num_key_value_heads") or heads, text.get("head_dim") or width // heads)
    with suppress(OSError):  # the head of the model's README names it
        head = (folder / "README.md").read_text(encoding="utf-8", errors="replace").splitlines()[:60]
        licence = next((line.partition(":")[2].strip() for line in head if line.startswith("license:")), "")
    return {
        "parameters": sum(map(_parameters, folder.glob("*.safetensors"))) or None,
        "disk_bytes": bytes_on_disk(folder),
        "trained_tokens": text.get("max_position_embeddings"),
        # that are read of a text, by an embedding model that is set to read less
        "context_tokens": _json(folder / "sentence_bert_config.json").get("max_seq_length"),
        "licence": licence,
        "cache": cache,
        "thinks": None if written is None else "enable_thinking" in str(written) or "<think" in str(written),
        "sees": "vision_config" in config if config else None,
    }


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


def gguf_facts(path: Path, weights: str, kv: str) -> tuple[dict[str, Any], str, int]:
    """Return the facts of a GGUF file; how its weights are stored, asked for as `weights`, and the bytes they take.

    Its cache is stored as `kv`.
    """
    from gguf import GGUFReader

    try:
        tensors = GGUFReader(path).tensors
    except (ValueError, KeyError, IndexError, OSError) as error:
        raise ModelError(f"{path.name} is not a whole GGUF file ({error}); download it again.") from error
    found = gguf_metadata(path) or {}
    n_values: Counter[str] = Counter()
    for tensor in tensors:
        n_values[tensor.tensor_type.name] += prod(tensor.shape.tolist())
    facts = {
        "parameters": n_values.total(),
        "disk_bytes": path.stat().st_size,
        "trained_tokens": _of(found, "context_length"),
        "licence": str(found.get("general.license", "")),
        "cache": gguf_cache(found, kv),
        "thinks": gguf_card(found).thinks,
        "sees": False,
    }
    stored_as = n_values.most_common(1)[0][0] if weights == GIVEN else weights.upper()
    return facts, stored_as, sum(stored_bytes(tensor, weights) for tensor in tensors)


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
