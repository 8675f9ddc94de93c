"""What assembles the context and what answers from it, by name."""

from __future__ import annotations

from rag_lab._kit.registry import BuiltIn, Kind

_ROOM = "rag_lab.stages.answer"

CONTEXTS = Kind(
    "context",
    "rag_lab.contexts",
    {"numbered": BuiltIn(f"{_ROOM}.context:numbered", "passages with source and page, cut to a budget around the hit")},
)
READERS = Kind(
    "reader",
    "rag_lab.readers",
    {
        "none": BuiltIn(f"{_ROOM}.generate:unanswered", "no answer: retrieval alone is measured"),
        "llm": BuiltIn(f"{_ROOM}.generate:by_llm", "a chat model, which cites passages by number"),
    },
)
