"""Writes a model's card from its name: from its file or folder, from Ollama, or from what its provider says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rag_lab._kit.registry import Kind
from rag_lab.errors import ModelError
from rag_lab.models.card.model_card import ModelCard
from rag_lab.models.card.weight_facts import WeightFacts, downloaded_folder, folder_facts, gguf_facts
from rag_lab.models.config import alternatives, is_failover
from rag_lab.models.failover import missing_requirement
from rag_lab.models.providers import (
    CHAT_MODELS,
    MODEL_KINDS,
    QUERY_LIKELIHOODS,
    ModelSpec,
    Provider,
    providers_of,
    split_name,
)
from rag_lab.models.shared import model_of
from rag_lab.models.weights import find

_FACTS = ("parameters", "trained_tokens", "context_tokens", "licence", "disk_bytes", "cache", "thinks", "sees")
_HELD_BITS = {"float32": 32.0, "bfloat16": 16.0, "float16": 16.0}
_NF4_BITS = 4.5  # a scale for each 64 values (Dettmers et al. 2023, section 3)


def model_card(model: str, batch: int = 1, kind: Kind | None = None) -> ModelCard:
    """Return the card of `provider:name?options`; nothing is loaded or downloaded.

    Args:
        model: a chat model, or, where no chat model has its provider, one of another kind.
        batch: sequences that are read and written at a time, each with a cache of its own.
        kind: the kind of model, where it is known.
    """
    if is_failover(model):
        raise ModelError(f"A card is of one model, and {len(alternatives(model))} are named; ask for one at a time.")
    kind = kind or _kind(model)
    spec = ModelSpec.parse(model, kind)
    provider = providers_of(kind)[spec.provider]
    card = ModelCard(
        model,
        kind.name,
        batch=batch,
        keeps_schema=(bool(model_of(kind, model).constrains_json) if kind is CHAT_MODELS else None),
    )
    card = replace(card, notes=_notes(missing_requirement(kind, model)))
    if spec.provider == "ollama":
        return _of_ollama(card, spec)
    if provider.is_server:
        return _of_service(card, provider, spec)
    return _of_weights(card, spec)


def _kind(model: str) -> Kind:
    name = split_name(model, CHAT_MODELS)[0]
    return next((kind for kind in MODEL_KINDS if name in providers_of(kind)), CHAT_MODELS)


def _of_weights(card: ModelCard, spec: ModelSpec) -> ModelCard:
    source = find(spec.name)
    if source.on_hub:
        folder = downloaded_folder(source.location)
        if folder is None:
            return _noting(card, f"{source.location} has not been downloaded: its card is known once it is.")
        return _of_folder(card, folder, spec)
    path = Path(source.location)
    return _of_folder(card, path, spec) if path.is_dir() else _of_gguf(card, path, spec)


def _of_gguf(card: ModelCard, path: Path, spec: ModelSpec) -> ModelCard:
    runs_gguf = spec.provider == "llamacpp"
    model = model_of(CHAT_MODELS, card.model) if runs_gguf else None
    facts = gguf_facts(path, model.weights if model else "given", str(spec.options.get("kv", "f16")))
    card = _with_facts(card, facts)
    if model is None or facts.parameters is None:
        return _held_by_torch(card, spec)
    bits, weights_mb = 8 * facts.weights_bytes / facts.parameters, facts.weights_bytes / 2**20
    context = model.context_tokens
    return replace(card, stored_as=facts.stored_as, bits=bits, weights_mb=weights_mb, context_tokens=context)


def _of_folder(card: ModelCard, folder: Path, spec: ModelSpec) -> ModelCard:
    facts = folder_facts(folder)
    if card.kind not in (CHAT_MODELS.name, QUERY_LIKELIHOODS.name):
        facts = replace(facts, cache=None)
    if card.kind != CHAT_MODELS.name:
        facts = replace(facts, thinks=None, sees=None)
    return _held_by_torch(_with_facts(card, facts), spec)


def _with_facts(card: ModelCard, facts: WeightFacts) -> ModelCard:
    return replace(card, **{name: getattr(facts, name) for name in _FACTS})


def _held_by_torch(card: ModelCard, spec: ModelSpec) -> ModelCard:
    """Add what the weights take in memory: in 4 bits, in the type asked for, else 32 bits on a CPU and 16 on a GPU."""
    four_bit = bool(spec.options.get("4bit")) or spec.provider == "unsloth"
    held = "4 bits (NF4)" if four_bit else str(spec.options.get("dtype") or _default_type(spec))
    bits = _NF4_BITS if four_bit else _HELD_BITS[held]
    cache = card.cache and replace(card.cache, bits=16.0 if four_bit else bits)
    context = spec.options.get("context") or card.context_tokens or card.trained_tokens
    weights_mb = None if card.parameters is None else card.parameters * bits / 8 / 2**20
    return replace(
        card,
        stored_as=held,
        bits=bits,
        cache=cache,
        context_tokens=int(context) if context else None,
        weights_mb=weights_mb,
    )


def _default_type(spec: ModelSpec) -> str:
    from rag_lab.models.local.causal import device_or_default

    return "float32" if device_or_default(str(spec.options.get("device", ""))) == "cpu" else "bfloat16"


def _of_ollama(card: ModelCard, spec: ModelSpec) -> ModelCard:
    from rag_lab.models.remote.ollama_server import OllamaServer

    server = OllamaServer(str(spec.options.get("base_url", "")))
    try:
        told = server.described(spec.name)
        pulled = server.pulled(spec.name)
    except ModelError as error:
        return _noting(card, str(error))
    if pulled:
        card = replace(card, stored_as=pulled.quantization, disk_bytes=pulled.size_bytes)
        card = _noting(card, f"Ollama tells {pulled.parameters} parameters." if pulled.parameters else "")
    context = spec.options.get("context")
    return replace(
        card,
        trained_tokens=told.context_tokens or None,
        context_tokens=int(context) if context else None,
        thinks="thinking" in told.capabilities if told.capabilities else None,
        sees="vision" in told.capabilities if told.capabilities else None,
    )


def _of_service(card: ModelCard, provider: Provider, spec: ModelSpec) -> ModelCard:
    told = "Its weights are elsewhere: size and memory are its server's."
    context = spec.options.get("context")
    return replace(
        _noting(card, told),
        context_tokens=int(context) if context else None,
        sees=None if provider.sees_images else False,
    )


def _noting(card: ModelCard, sentence: str) -> ModelCard:
    return replace(card, notes=tuple(dict.fromkeys((*card.notes, *_notes(sentence)))))


def _notes(sentence: str) -> tuple[str, ...]:
    return (sentence,) if sentence else ()
