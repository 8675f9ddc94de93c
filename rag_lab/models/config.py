"""The part of a configuration that says which model plays which role."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator

from rag_lab._kit.config_file import Section
from rag_lab.errors import ModelError
from rag_lab.models.failover.names import alternatives, from_yaml, written
from rag_lab.redaction import holds_secret


class ModelsConfig(Section):
    """Which model plays which role: `provider:name`, or `first | second`, of which the first that answers plays it."""

    embedding: str = Field("sentence_transformers:minilm", description="embeds children and questions")
    understanding: str = Field("llamacpp:smollm2", description="classifies and rewrites the question")
    hyde: str = Field("llamacpp:smollm2", description="writes hypothetical documents")
    generation: str = Field("llamacpp:smollm2", description="answers")
    cross_encoder: str = Field("sentence_transformers:BAAI/bge-reranker-v2-m3", description="reranks")
    likelihood: str = Field("transformers:smollm2", description="causal model of the query_likelihood reranker")
    vision: str = Field("gemini:gemini-2.5-flash", description="reads PDF pages where corpus.pdf is `vision`")

    @field_validator("*", mode="before")
    @classmethod
    def _in_one_text(cls, value: Any) -> Any:
        try:
            return from_yaml(value)
        except ModelError as error:
            raise ValueError(str(error)) from None

    @field_validator("*")
    @classmethod
    def _names_a_provider(cls, value: str) -> str:
        for one in alternatives(value):
            provider, _, name = one.partition(":")
            if not provider or not name:
                raise ValueError("a model is named provider:name")
        if holds_secret(value):
            raise ValueError("a model name must not hold secrets (set the provider's environment variable instead)")
        return written(alternatives(value))
