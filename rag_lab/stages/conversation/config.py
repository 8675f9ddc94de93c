"""The part of a configuration that says what is remembered of a conversation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rag_lab._kit.config_section import Section


class ConversationConfig(Section):
    """What rewriting and answering read of the turns before a question."""

    memory: Literal["none", "last_exchange", "window", "summary"] = Field(
        "window",
        description="nothing, the last question with its answer, the last turns, or a summary and the turns since",
    )
    window_turns: int = Field(6, ge=1, le=1000, description="turns that the memory `window` keeps")
    summary_every: int = Field(6, ge=1, le=1000, description="turns that the memory `summary` sums up at a time")
    summary_tokens: int = Field(120, ge=16, le=4096, description="length of a summary")
