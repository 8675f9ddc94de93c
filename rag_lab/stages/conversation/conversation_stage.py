"""The memory that a configuration asks for."""

from __future__ import annotations

from rag_lab.stages.conversation.remember import LastTurns
from rag_lab.stages.conversation.summarize import Summarize
from rag_lab.stages.parts import Parts
from rag_lab.stages.stage import Stage

_EXCHANGE = 2  # turns: a question and its answer


def conversation_stage(parts: Parts) -> Stage:
    """Return what remembers the turns before a question."""
    conversation = parts.conversation
    if conversation.memory == "summary":
        return Summarize(
            parts.chat("understanding", Summarize.name),
            conversation.summary_every,
            conversation.summary_tokens,
            parts.seed,
            parts.prompts.get("summary"),
            parts.memory,
            parts.replayed,
        )
    turns = {"none": 0, "last_exchange": _EXCHANGE, "window": conversation.window_turns}
    return LastTurns(turns[conversation.memory])
