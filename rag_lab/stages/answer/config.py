"""The part of a configuration that says how context and answer are made."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from rag_lab._kit.config_section import Section
from rag_lab.stages.answer.answer_kinds import CONTEXTS, READERS


class AnswerConfig(Section):
    """Context, generation and parsing."""

    name: Annotated[str, AfterValidator(READERS.check), READERS] = Field(
        "llm", description="`none` measures retrieval alone; or a reader of your own as module:Class"
    )
    context: Annotated[str, AfterValidator(CONTEXTS.check), CONTEXTS] = Field(
        "numbered", description="what assembles the context, or one of your own as module:Class"
    )
    context_tokens: int = Field(1200, ge=32, le=2_000_000, description="token budget of the passages, never exceeded")
    context_bytes: int = Field(
        0, ge=0, le=100_000_000, description="budget in bytes of UTF-8, never exceeded either; 0 is none"
    )
    max_tokens: int = Field(160, ge=8, le=200_000, description="length of the reply")
    temperature: float = Field(0.0, ge=0, le=2, description="0 is greedy")
    thinking: bool = Field(False, description="ask for and split off the model's thinking (Qwen3)")
    thinking_tokens: int = Field(2048, ge=16, le=65_536, description="room for thinking, beside the reply's max_tokens")

    @property
    def is_on(self) -> bool:
        """Whether answers are generated."""
        return self.name != "none"
