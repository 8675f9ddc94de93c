"""The part of a configuration that says how questions are understood, rewritten and expanded."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from rag_lab._kit.config_section import Section
from rag_lab.records import QUERY_CLASSES, QueryClass
from rag_lab.stages.query.query_kinds import HYDE_WRITERS, REWRITINGS, UNDERSTANDINGS


class QueryConfig(Section):
    """Query understanding and HyDE."""

    understanding: Annotated[str, AfterValidator(UNDERSTANDINGS.check), UNDERSTANDINGS] = Field(
        "llm", description="what classifies and rewrites, or one of your own as module:Class"
    )
    rewrite: Annotated[str, AfterValidator(REWRITINGS.check), REWRITINGS] = Field(
        "llm", description="search the model's rewrite instead of the wording, or one of your own"
    )
    min_similarity: float = Field(0.6, ge=-1, le=1, description="cosine below which a rewrite has drifted")
    hyde: Literal["none", "always", "classified"] = Field("classified", description="when to search by HyDE")
    hyde_writer: Annotated[str, AfterValidator(HYDE_WRITERS.check), HYDE_WRITERS] = Field(
        "llm", description="what writes hypothetical documents, or one of your own"
    )
    class_to_hyde: dict[QueryClass, bool] = Field(
        {"specific": False, "fuzzy": True, "comparative": False, "procedural": True, "creative": True},
        description="which classes get HyDE when hyde is `classified`; overrides the model's suggestion",
    )
    phrasings: int = Field(0, ge=0, le=8, description="other phrasings of the question that are searched, too")
    hyde_max_tokens: int = Field(96, ge=8, le=4096, description="length of a hypothetical document")

    @field_validator("class_to_hyde")
    @classmethod
    def _every_class(cls, value: dict[QueryClass, bool]) -> dict[QueryClass, bool]:
        missing = [name for name in QUERY_CLASSES if name not in value]
        if missing:
            raise ValueError(f"class_to_hyde must decide on every class; missing: {', '.join(missing)}")
        return {name: value[name] for name in QUERY_CLASSES}
