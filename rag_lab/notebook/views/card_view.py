"""A model's card: what it is, what it can do, and what it needs of this machine."""

from __future__ import annotations

from rag_lab.models.card.model_card import ModelCard
from rag_lab.notebook.views.view import Page, TextView

_SAID = {True: "yes", False: "no", None: "unknown"}


def card_view(card: ModelCard) -> Page:
    """Return what a model is, what it can do, and what it needs of this machine."""
    facts, text = _facts(card), TextView()
    text.facts([("Model", card.model), *facts, *(("Note", note) for note in card.notes)])
    return Page("model_card.html", {"model": card.model, "facts": facts, "notes": card.notes}, text)


def _facts(card: ModelCard) -> list[tuple[str, str]]:
    is_chat = card.keeps_schema is not None
    facts = [
        ("Kind", card.kind),
        ("Parameters", "" if card.parameters is None else f"{card.parameters / 1e6:,.0f} million"),
        ("Weights", _weights(card)),
        ("Context", _context(card)),
        ("Licence", card.licence or ("" if card.disk_bytes is None else "its files name none")),
        ("On disk", "" if card.disk_bytes is None else f"{card.disk_bytes / 1e6:,.0f} MB"),
        ("Memory", _memory(card)),
        ("Cache", _cache(card)),
        ("Measured here", _measured(card)),
        ("Thinks", _SAID[card.thinks] if is_chat else ""),
        ("Sees images", _SAID[card.sees] if is_chat else ""),
        ("Keeps a schema", _SAID[card.keeps_schema] if is_chat else ""),
    ]
    return [(name, text) for name, text in facts if text]


def _weights(card: ModelCard) -> str:
    return card.stored_as if card.bits is None else f"{card.stored_as}, {card.bits:.1f} bits each on average"


def _context(card: ModelCard) -> str:
    told = [] if card.context_tokens is None else [f"{card.context_tokens:,} tokens"]
    if card.trained_tokens is not None and card.trained_tokens != card.context_tokens:
        told.append(f"made for {card.trained_tokens:,}")
    too_long = card.context_tokens and card.trained_tokens and card.context_tokens > card.trained_tokens
    return ", ".join(told) + ("; beyond that its replies are worth nothing" if too_long else "")


def _memory(card: ModelCard) -> str:
    if card.memory_mb is None or card.weights_mb is None:
        return ""
    cache = "" if card.cache_mb is None else f" + {card.cache_mb:,.0f} cache of keys and values"
    return f"{card.memory_mb:,.0f} MiB = {card.weights_mb:,.0f} weights{cache}; what a call computes with comes on top"


def _cache(card: ModelCard) -> str:
    if card.cache is None or card.context_tokens is None:
        return ""
    return card.cache.formula(card.context_tokens, card.batch)


def _measured(card: ModelCard) -> str:
    found = card.measured
    if found is None:
        return ""
    told = [f"{found.tokens_per_second:,.1f} tokens a second"]
    told += [] if found.memory_mb is None else [f"{found.memory_mb:,.0f} MiB"]
    told += [] if found.load_s is None else [f"{found.load_s:,.1f} s to load"]
    told += [] if found.joules_per_token is None else [f"{found.joules_per_token:,.2f} J a token"]
    return ", ".join(told)
