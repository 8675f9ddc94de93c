"""The card of a model: what it is and can, and what it will need of this machine; from its file or folder, or a server.

Nothing is loaded to write it: facts of weights are read from their files.
"""

import json
import struct
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from rag_lab._kit.machine import bytes_on_disk
from rag_lab._kit.registry import Kind
from rag_lab.errors import ModelError
from rag_lab.models import config, providers, shared, weights
from rag_lab.models.local.gguf import GIVEN, TYPES, gguf_card, gguf_metadata, gguf_reader, stored_bytes
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.rich_display import rich_display

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
    return folder if any(any(folder.rglob(ending)) for ending in ("*.safetensors", "*.bin", "*.gguf")) else None


@dataclass(frozen=True, slots=True)
class Cache:
    """What a transformer keeps of each token: keys and values of every layer (the most: some layers look back less)."""

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
    config, template = weights.read_json(folder / "config.json", {}), folder / "chat_template.jinja"
    text = config.get("text_config") or config
    written: str | None = weights.read_json(folder / "tokenizer_config.json", {}).get("chat_template")
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
        "context_tokens": weights.read_json(folder / "sentence_bert_config.json", {}).get("max_seq_length"),
        "licence": licence,
        "cache": cache,
        "thinks": None if written is None else "enable_thinking" in str(written) or "<think" in str(written),
        "sees": "vision_config" in config if config else None,
    }


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
    """Return the facts of a GGUF file with a cache as `kv`, how its weights are stored (`weights`), and their bytes."""
    try:
        tensors = gguf_reader(path).tensors
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


_HELD_BITS = {"float32": 32.0, "bfloat16": 16.0, "float16": 16.0}
_NF4_BITS = 4.5  # a scale for each 64 values (Dettmers et al. 2023, section 3)
_READ = "The ram guides are greased every five hundred hours; the filter of the oven is changed every month. " * 12
_ASKED = ("What is greased?", "What is changed every month?", "How often are the guides greased?")


@dataclass(frozen=True, slots=True)
class Measured:
    """What a few short requests took here; None is what could not be measured."""

    tokens_per_second: float
    load_s: float | None = None
    memory_mb: float | None = None
    joules_per_token: float | None = None


@rich_display("rag_lab.notebook.views.pipeline_view:card_view")
@dataclass(frozen=True, slots=True)
class ModelCard:
    """What is known of a model. None is what nobody says; `notes` are sentences on what is missing and why."""

    model: str  # provider:name?options
    kind: str  # chat model, embedder, ...
    parameters: int | None = None
    stored_as: str = ""  # how its weights are held: Q4_0, bfloat16, ...
    bits: float | None = None  # a weight, on average
    context_tokens: int | None = None  # as it will run
    trained_tokens: int | None = None  # the longest context that its weights are made for
    licence: str = ""
    disk_bytes: int | None = None
    weights_mb: float | None = None  # in memory
    cache: Cache | None = None
    batch: int = 1  # sequences at a time, of which the cache is kept
    thinks: bool | None = None
    sees: bool | None = None
    keeps_schema: bool | None = None
    measured: Measured | None = None
    notes: tuple[str, ...] = ()

    @property
    def cache_mb(self) -> float | None:
        """MiB of keys and values at this context and batch."""
        if self.cache is None or self.context_tokens is None:
            return None
        return self.cache.mb(self.context_tokens, self.batch)

    @property
    def memory_mb(self) -> float | None:
        """MiB that weights and cache need together; what a call computes with comes on top."""
        return None if self.weights_mb is None else self.weights_mb + (self.cache_mb or 0.0)


def model_card(model: str, batch: int = 1, kind: Kind | None = None) -> ModelCard:
    """Return the card of `provider:name?options`; nothing is loaded or downloaded.

    Each of `batch` sequences at a time has a cache. Without a `kind` it is a chat model, where one has its provider.
    """
    if (n_models := len(config.alternatives(model))) > 1:
        raise ModelError(f"A card is of one model, and {n_models} are named; ask for one at a time.")
    if kind is None:
        name, chat = providers.split_name(model, providers.CHAT_MODELS)[0], providers.CHAT_MODELS
        kind = next((kind for kind in providers.MODEL_KINDS if name in providers.providers_of(kind)), chat)
    spec = providers.ModelSpec.parse(model, kind)
    provider = providers.providers_of(kind)[spec.provider]
    keeps_schema = bool(shared.model_of(kind, model).constrains_json) if kind is providers.CHAT_MODELS else None
    card = ModelCard(model, kind.name, batch=batch, keeps_schema=keeps_schema)
    card = _noting(card, shared.missing_requirement(kind, model))
    if provider.is_server:
        context = spec.options.get("context")
        card = replace(card, context_tokens=int(context) if context else None)
        if spec.provider == "ollama":
            return _of_ollama(card, spec)
        sees = None if provider.sees_images else False
        return replace(_noting(card, "Its weights are elsewhere: size and memory are its server's."), sees=sees)
    source = weights.find(spec.name)
    path = downloaded_folder(source.location) if source.on_hub else Path(source.location)
    if path is None:
        return _noting(card, f"{source.location} has not been downloaded: its card is known once it is.")
    if path.is_dir():
        facts = folder_facts(path)
        if kind not in (providers.CHAT_MODELS, providers.QUERY_LIKELIHOODS):
            facts["cache"] = None
        if kind is not providers.CHAT_MODELS:
            facts |= {"thinks": None, "sees": None}
        return _held_by_torch(replace(card, **facts), spec)
    llamacpp = shared.model_of(kind, model) if spec.provider == "llamacpp" else None
    facts, stored_as, n_bytes = gguf_facts(
        path, llamacpp.weights if llamacpp else GIVEN, str(spec.options.get("kv", "f16"))
    )
    card = replace(card, **facts)
    if llamacpp is None or card.parameters is None:
        return _held_by_torch(card, spec)
    return replace(
        card,
        stored_as=stored_as,
        bits=8 * n_bytes / card.parameters,
        weights_mb=n_bytes / 2**20,
        context_tokens=llamacpp.context_tokens,
    )


def _held_by_torch(card: ModelCard, spec: providers.ModelSpec) -> ModelCard:
    """Add what the weights take in memory: in 4 bits, in the type asked for, else 32 bits on a CPU and 16 on a GPU."""
    from rag_lab.models.local.causal import device_or_default

    four_bit, held = bool(spec.options.get("4bit")) or spec.provider == "unsloth", str(spec.options.get("dtype", ""))
    if four_bit:
        held = "4 bits (NF4)"
    elif not held:
        held = "float32" if device_or_default(str(spec.options.get("device", ""))) == "cpu" else "bfloat16"
    bits = _NF4_BITS if four_bit else _HELD_BITS[held]
    context = spec.options.get("context") or card.context_tokens or card.trained_tokens
    return replace(
        card,
        stored_as=held,
        bits=bits,
        cache=card.cache and replace(card.cache, bits=16.0 if four_bit else bits),
        context_tokens=int(context) if context else None,
        weights_mb=None if card.parameters is None else card.parameters * bits / 8 / 2**20,
    )


def _of_ollama(card: ModelCard, spec: providers.ModelSpec) -> ModelCard:
    from rag_lab.models.remote.ollama import OllamaServer

    server = OllamaServer(str(spec.options.get("base_url", "")))
    try:
        told, pulled = server.described(spec.name), server.pulled(spec.name)
    except ModelError as error:
        return _noting(replace(card, context_tokens=None), str(error))
    return replace(
        _noting(card, f"Ollama tells {pulled.parameters} parameters." if pulled.parameters else ""),
        stored_as=pulled.quantization,
        disk_bytes=pulled.size_bytes,
        trained_tokens=told.context_tokens or None,
        thinks="thinking" in told.capabilities if told.capabilities else None,
        sees="vision" in told.capabilities if told.capabilities else None,
    )


def _noting(card: ModelCard, sentence: str) -> ModelCard:
    return replace(card, notes=tuple(filter(None, dict.fromkeys((*card.notes, sentence)))))


def measure(model: ChatModel) -> Measured:
    """Ask three questions about 300 tokens of text, one after the other, and return what they took."""

    def asked(text: str) -> list[ChatReply]:
        return model.generate([ChatRequest((Message("user", text),), max_tokens=48)])

    asked("Say hello.")  # loads it; compiling and caching are none of its speed
    started = time.perf_counter()
    replies = [reply for text in _ASKED for reply in asked(_READ + text)]
    seconds = time.perf_counter() - started
    if failed := next((reply.error for reply in replies if reply.error), ""):
        raise ModelError(f"The model answered no request: {failed}")
    written = sum(reply.tokens_out for reply in replies)
    used = replies[-1].machine
    joules = [reply.machine.joules for reply in replies if reply.machine and reply.machine.joules is not None]
    return Measured(
        tokens_per_second=written / seconds,
        load_s=used.load_s if used else None,
        memory_mb=used.memory_mb if used else None,
        joules_per_token=sum(joules) / written if joules and written else None,
    )
