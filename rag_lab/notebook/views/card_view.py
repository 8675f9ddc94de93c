"""A model's card: what it is, what it can do, and what it needs of this machine."""

from rag_lab.models.card.model_card import ModelCard
from rag_lab.notebook.views.view import Page, TextView

_SURE = {True: "yes", False: "no", None: "unknown"}


def card_view(card: ModelCard) -> Page:
    """Return what a model is, what it can do, and what it needs of this machine."""
    is_chat, context, cache = card.keeps_schema is not None, card.context_tokens, ""
    if card.cache is not None and context is not None:
        cache = card.cache.formula(context, card.batch)
    window = [] if context is None else [f"{context:,} tokens"]
    if card.trained_tokens is not None and card.trained_tokens != context:
        window.append(f"made for {card.trained_tokens:,}")
    too_long = context and card.trained_tokens and context > card.trained_tokens
    memory = ""
    if card.memory_mb is not None and card.weights_mb is not None:
        keys = "" if card.cache_mb is None else f" + {card.cache_mb:,.0f} cache of keys and values"
        memory = f"{card.memory_mb:,.0f} MiB = {card.weights_mb:,.0f} weights{keys}"
        memory += "; what a call computes with comes on top"
    measured = []
    if found := card.measured:
        measured = [f"{found.tokens_per_second:,.1f} tokens a second"]
        measured += [] if found.memory_mb is None else [f"{found.memory_mb:,.0f} MiB"]
        measured += [] if found.load_s is None else [f"{found.load_s:,.1f} s to load"]
        measured += [] if found.joules_per_token is None else [f"{found.joules_per_token:,.2f} J a token"]
    known = (
        ("Kind", card.kind),
        ("Parameters", "" if card.parameters is None else f"{card.parameters / 1e6:,.0f} million"),
        ("Weights", card.stored_as + ("" if card.bits is None else f", {card.bits:.1f} bits each on average")),
        ("Context", ", ".join(window) + ("; beyond that its replies are worth nothing" if too_long else "")),
        ("Licence", card.licence or ("" if card.disk_bytes is None else "its files name none")),
        ("On disk", "" if card.disk_bytes is None else f"{card.disk_bytes / 1e6:,.0f} MB"),
        ("Memory", memory),
        ("Cache", cache),
        ("Measured here", ", ".join(measured)),
        ("Thinks", _SURE[card.thinks] if is_chat else ""),
        ("Sees images", _SURE[card.sees] if is_chat else ""),
        ("Keeps a schema", _SURE[card.keeps_schema] if is_chat else ""),
    )
    facts, text = [(name, fact) for name, fact in known if fact], TextView()
    text.facts([("Model", card.model), *facts, *(("Note", note) for note in card.notes)])
    return Page("model_card.html", {"model": card.model, "facts": facts, "notes": card.notes}, text)
