"""What a folder of weights says of its model: its configuration, and the heads of its safetensors files."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from rag_lab._kit.machine import bytes_on_disk
from rag_lab.models.card.model_card import Cache

_HEAD_BYTES = 8  # of a safetensors file: the length of the JSON that follows
_MOST_HEAD_BYTES = 100_000_000
_PACKED = "U8"  # bitsandbytes keeps two 4-bit weights a byte


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """A folder's facts; None is what it does not say."""

    parameters: int | None
    disk_bytes: int
    trained_tokens: int | None
    read_tokens: int | None  # of a text, by an embedding model that is set to read less
    licence: str
    cache: Cache | None
    thinks: bool | None
    sees: bool | None


def folder_facts(folder: Path) -> FolderFacts:
    """Return the facts of the weights in `folder`; no library is asked."""
    config = _json(folder / "config.json")
    text = config.get("text_config") or config
    template = _template(folder)
    return FolderFacts(
        parameters=sum(map(_parameters, folder.glob("*.safetensors"))) or None,
        disk_bytes=bytes_on_disk(folder),
        trained_tokens=text.get("max_position_embeddings"),
        read_tokens=_json(folder / "sentence_bert_config.json").get("max_seq_length"),
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
