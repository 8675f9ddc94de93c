"""What assembles the context and what answers from it, by name."""

from __future__ import annotations

from rag_lab._kit.registry import BuiltIn, Kind

_ROOM = "rag_lab.stages.answer"

CONTEXTS = Kind(
    "context",
    "rag_lab.contexts",
    {
        "retrieved": BuiltIn(f"{_ROOM}.context:retrieved", "what was ranked first, cut to a budget around the hit"),
        "none": BuiltIn(f"{_ROOM}.bound_contexts:no_context", "nothing: the model answers out of what it knows"),
        "gold": BuiltIn(f"{_ROOM}.bound_contexts:gold", "the labelled evidence, cut to a budget around its quotes"),
        "document": BuiltIn(f"{_ROOM}.bound_contexts:document", "the files of the labelled evidence, within a budget"),
    },
    call="__call__(self, question, passages)",
)
READERS = Kind(
    "reader",
    "rag_lab.readers",
    {
        "none": BuiltIn(f"{_ROOM}.generate:unanswered", "no answer: retrieval alone is measured"),
        "llm": BuiltIn(f"{_ROOM}.generate:by_llm", "a chat model, which cites passages by number"),
        "text": BuiltIn(f"{_ROOM}.generate:by_text", "a chat model, whose whole reply is the answer"),
        "extract": BuiltIn(f"{_ROOM}.extract:by_quote", "the sentences, rows or items that answer best, word for word"),
    },
    call="__call__(self, question, passages)",
)
