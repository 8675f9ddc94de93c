"""What understands questions, rewrites them and writes hypothetical documents, by name."""

from __future__ import annotations

from rag_lab._kit.registry import BuiltIn, Kind

_ROOM = "rag_lab.stages.query"

FOLLOW_UPS = "follow_ups"

UNDERSTANDINGS = Kind(
    "understanding",
    "rag_lab.understanding",
    {"llm": BuiltIn(f"{_ROOM}.understand:by_llm", "one call of a chat model: class, rewrite and HyDE suggestion")},
    call="__call__(self, question)",
)
REWRITINGS = Kind(
    "rewriting",
    "rag_lab.rewriting",
    {
        "none": BuiltIn(f"{_ROOM}.rewrite:own_words", "the user's own wording is searched"),
        "joined": BuiltIn(f"{_ROOM}.joined_turns:joined", "the turns that are remembered and the wording, as one text"),
        FOLLOW_UPS: BuiltIn(
            f"{_ROOM}.rewrite:of_follow_ups", "that of questions with a conversation before them alone"
        ),
        "llm": BuiltIn(
            f"{_ROOM}.rewrite:proposed", "the understanding's rewrite, unless the guard finds that it has drifted"
        ),
    },
    call="__call__(self, question)",
)
HYDE_WRITERS = Kind(
    "HyDE writer",
    "rag_lab.hyde",
    {"llm": BuiltIn(f"{_ROOM}.hyde:by_llm", "a chat model, with a prompt for each class (Gao et al. 2022)")},
    call="__call__(self, question, query_class)",
)
