"""The section of a configuration that says which model plays which role, and how several for one role are written."""

import re
from collections.abc import Mapping
from typing import Any

from pydantic import Field, field_validator

from rag_lab._kit.section import Section
from rag_lab.redaction import holds_secret

_KEY = "failover"
_BETWEEN = re.compile(r"(?:^|\s+)\|(?:\s+|$)")  # blanks around it: a parameter of one's own model may hold the mark


def alternatives(text: str) -> tuple[str, ...]:
    """Return the models that `text` names, the preferred one first; most often one."""
    return tuple(name.strip() for name in _BETWEEN.split(text))


def from_yaml(value: Any) -> Any:
    """Return {failover: [first, second]} as `first | second`, and any other value as it is."""
    if not isinstance(value, Mapping):
        return value
    names = value.get(_KEY)
    listed = [name.strip() for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []
    if set(value) != {_KEY} or len(listed) != len(names or ()) or len({*listed}) < max(2, len(listed)):
        raise ValueError("several models for one role are written {failover: [first, second]}, each by provider:name")
    return " | ".join(listed)


class ModelsConfig(Section):
    """Which model plays which role: `provider:name`, or `first | second`, of which the first that answers plays it."""

    embedding: str = Field("sentence_transformers:minilm", description="embeds children and questions")
    understanding: str = Field("llamacpp:smollm2", description="classifies and rewrites the question")
    hyde: str = Field("llamacpp:smollm2", description="writes hypothetical documents")
    generation: str = Field("llamacpp:smollm2", description="answers")
    cross_encoder: str = Field("sentence_transformers:BAAI/bge-reranker-v2-m3", description="reranks")
    likelihood: str = Field("transformers:smollm2", description="causal model of the query_likelihood reranker")
    late_interaction: str = Field(
        "sentence_transformers:minilm",
        description="token vectors for the search `late` and the reranker `maxsim`; a ColBERT is one, too",
    )
    sparse: str = Field("sentence_transformers:granite-sparse", description="weights of words for the search `splade`")
    report: str = Field("llamacpp:smollm2", description="writes reports: outline, sections, reviews")
    vision: str = Field("gemini:gemini-2.5-flash", description="reads PDF pages where corpus.pdf is `vision`")

    @field_validator("*", mode="before")
    @classmethod
    def _names_providers(cls, value: Any) -> Any:
        value = from_yaml(value)
        if not isinstance(value, str):
            return value
        for one in alternatives(value):
            provider, _, name = one.partition(":")
            if not provider or not name:
                raise ValueError("a model is named provider:name")
        if holds_secret(value):
            raise ValueError("a model name must not hold secrets (set the provider's environment variable instead)")
        return " | ".join(alternatives(value))
