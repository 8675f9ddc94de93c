"""What understands questions, rewrites them and writes hypothetical documents, by name."""

from __future__ import annotations

from rag_lab._kit.registry import BuiltIn, Kind

_ROOM = "rag_lab.stages.query"

UNDERSTANDINGS = Kind(
    "understanding",
    "rag_lab.understanding",
    {"llm": BuiltIn(f"{_ROOM}.understand:by_llm", "one call of a chat model: class, rewrite and HyDE suggestion")},
)
REWRITINGS = Kind(
    "rewriting",
    "rag_lab.rewriting",
    {
        "none": BuiltIn(f"{_ROOM}.rewrite:own_words", "the user's own wording is searched"),
        "llm": BuiltIn(f"{_ROOM}.rewrite:guarded", "the understanding's rewrite, unless it has drifted"),
    },
)
HYDE_WRITERS = Kind(
    "HyDE writer",
    "rag_lab.hyde",
    {"llm": BuiltIn(f"{_ROOM}.hyde:by_llm", "a chat model, with a prompt for each class (Gao et al. 2022)")},
)
