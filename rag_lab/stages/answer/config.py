"""The part of a configuration that says how context and answer are made."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from rag_lab._kit.config_section import Section
from rag_lab.stages.answer.answer_kinds import CONTEXTS, READERS


class AnswerConfig(Section):
    """Context, generation and parsing."""

    name: Annotated[str, AfterValidator(READERS.check), READERS] = Field(
        "extract",
        description="extract (quotes), llm (JSON with citations), text (the answer alone), none (retrieval alone), or "
        "a reader of your own as module:Class",
    )
    context: Annotated[str, AfterValidator(CONTEXTS.check), CONTEXTS] = Field(
        "retrieved", description="what the reader reads: retrieved, none, gold, document, or your own as module:Class"
    )
    context_tokens: int = Field(1200, ge=32, le=2_000_000, description="token budget of the passages, never exceeded")
    context_bytes: int = Field(
        0, ge=0, le=100_000_000, description="budget in bytes of UTF-8, never exceeded either; 0 is none"
    )
    quote_sentences: int = Field(
        3, ge=1, le=20, description="most sentences, table rows or list items that are quoted, one after the other"
    )
    quote_word_weight: float = Field(
        0.5, ge=0, le=100, description="weight of the share of the question's words in a quote, beside the cosine"
    )
    quote_min_score: float = Field(0.2, ge=-1, le=1, description="score below which nothing is quoted")
    max_tokens: int = Field(160, ge=8, le=200_000, description="length of the reply")
    temperature: float = Field(0.0, ge=0, le=2, description="0 is greedy")
    thinking: bool = Field(False, description="ask for and split off the model's thinking, where it can think")
    thinking_tokens: int = Field(
        2048, ge=16, le=65_536, description="budget of thinking, at which it is ended, beside the reply's max_tokens"
    )
    top_p: float | None = Field(
        None, gt=0, le=1, description="sample from the likeliest tokens of this probability; null is the model card's"
    )
    top_k: int | None = Field(
        None, ge=1, le=1_000_000, description="sample from so many likeliest tokens; null is the model card's"
    )
    min_p: float | None = Field(
        None, ge=0, le=1, description="least probability, as a share of the likeliest token's; null is the model card's"
    )

    @property
    def is_on(self) -> bool:
        """Whether answers are generated."""
        return self.name != "none"

    @property
    def asks_model(self) -> bool:
        """Whether a language model may write them: nobody knows what a reader of one's own asks."""
        return self.name not in ("none", "extract")
