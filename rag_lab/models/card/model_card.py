"""The card of a model: its memory, foretold and measured; from its file or folder, Ollama, or what a provider says."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

from rag_lab._kit.registry import Kind
from rag_lab.errors import ModelError
from rag_lab.models import config, failover, providers, shared, weights
from rag_lab.models.card import weight_facts
from rag_lab.models.local.gguf_storage import GIVEN
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Message
from rag_lab.rich_display import rich_display

_HELD_BITS = {"float32": 32.0, "bfloat16": 16.0, "float16": 16.0}
_NF4_BITS = 4.5  # a scale for each 64 values (Dettmers et al. 2023, section 3)
_READ = "The ram guides are greased every five hundred hours; the filter of the oven is changed every month. " * 12
_ASKED = ("What is greased?", "What is changed every month?", "How often are the guides greased?")
_WRITTEN_TOKENS = 48


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
    cache: weight_facts.Cache | None = None
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

    Each of the `batch` sequences that are read and written at a time has a cache of its own. Where no `kind` is named
    it is a chat model, or one of another kind where no chat model has its provider.
    """
    if config.is_failover(model):
        raise ModelError(
            f"A card is of one model, and {len(config.alternatives(model))} are named; ask for one at a time."
        )
    if kind is None:
        name, chat = providers.split_name(model, providers.CHAT_MODELS)[0], providers.CHAT_MODELS
        kind = next((kind for kind in providers.MODEL_KINDS if name in providers.providers_of(kind)), chat)
    spec = providers.ModelSpec.parse(model, kind)
    provider = providers.providers_of(kind)[spec.provider]
    keeps_schema = bool(shared.model_of(kind, model).constrains_json) if kind is providers.CHAT_MODELS else None
    card = ModelCard(model, kind.name, batch=batch, keeps_schema=keeps_schema)
    card = _noting(card, failover.missing_requirement(kind, model))
    if provider.is_server:
        context = spec.options.get("context")
        card = replace(card, context_tokens=int(context) if context else None)
        if spec.provider == "ollama":
            return _of_ollama(card, spec)
        sees = None if provider.sees_images else False
        return replace(_noting(card, "Its weights are elsewhere: size and memory are its server's."), sees=sees)
    source = weights.find(spec.name)
    path = weight_facts.downloaded_folder(source.location) if source.on_hub else Path(source.location)
    if path is None:
        return _noting(card, f"{source.location} has not been downloaded: its card is known once it is.")
    if path.is_dir():
        facts = weight_facts.folder_facts(path)
        if kind not in (providers.CHAT_MODELS, providers.QUERY_LIKELIHOODS):
            facts["cache"] = None
        if kind is not providers.CHAT_MODELS:
            facts |= {"thinks": None, "sees": None}
        return _held_by_torch(replace(card, **facts), spec)
    llamacpp = shared.model_of(kind, model) if spec.provider == "llamacpp" else None
    facts, stored_as, n_bytes = weight_facts.gguf_facts(
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
    from rag_lab.models.remote.ollama_server import OllamaServer

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
        return model.generate([ChatRequest((Message("user", text),), max_tokens=_WRITTEN_TOKENS)])

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
