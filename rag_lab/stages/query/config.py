"""The part of a configuration that says how questions are understood, rewritten and expanded."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator

from rag_lab._kit.config_section import Section
from rag_lab.records import QUERY_CLASSES, QueryClass
from rag_lab.stages.query.query_kinds import FOLLOW_UPS, HYDE_WRITERS, REWRITINGS, UNDERSTANDINGS


class QueryConfig(Section):
    """Query understanding and HyDE."""

    understanding: Annotated[str, AfterValidator(UNDERSTANDINGS.check), UNDERSTANDINGS] = Field(
        "llm", description="what classifies and rewrites, or one of your own as module:Class"
    )
    rewrite: Annotated[str, AfterValidator(REWRITINGS.check), REWRITINGS] = Field(
        "none", description="search the model's rewrite instead of the wording, or one of your own"
    )
    min_similarity: float = Field(0.6, ge=-1, le=1, description="cosine below which a rewrite has drifted")
    guard: bool = Field(True, description="whether a rewrite that has drifted is refused")
    hyde: Literal["none", "always", "classified", "suggested"] = Field(
        "none", description="when to search by HyDE: by the class, or where the understanding suggests it"
    )
    hyde_writer: Annotated[str, AfterValidator(HYDE_WRITERS.check), HYDE_WRITERS] = Field(
        "llm", description="what writes hypothetical documents, or one of your own"
    )
    class_to_hyde: dict[QueryClass, bool] = Field(
        {"specific": False, "fuzzy": True, "comparative": False, "procedural": True, "creative": True},
        description="which classes get HyDE when hyde is `classified`; overrides the model's suggestion",
    )
    phrasings: int = Field(0, ge=0, le=8, description="other phrasings of the question that are searched, too")
    hyde_max_tokens: int = Field(96, ge=8, le=4096, description="length of a hypothetical document")
    hyde_n: int = Field(1, ge=1, le=16, description="documents a question; the mean of several, sampled, is searched")
    hyde_with_query: bool = Field(False, description="whether what is searched counts in that mean as one more")

    @property
    def writes_several(self) -> bool:
        """Whether there may be several hypothetical documents; a writer of one's own writes one."""
        return self.hyde_n > 1 and self.hyde_writer in HYDE_WRITERS.built_in

    @property
    def understands(self) -> bool:
        """Whether the understanding of a question is read: its rewrite, its class or its suggestion."""
        return self.rewrite in ("llm", FOLLOW_UPS) or self.hyde in ("classified", "suggested")

    @property
    def asks_only_follow_ups(self) -> bool:
        """Whether nothing but the rewrite of questions with a conversation is read of it."""
        return self.rewrite == FOLLOW_UPS and self.hyde not in ("classified", "suggested")

    @field_validator("class_to_hyde")
    @classmethod
    def _every_class(cls, value: dict[QueryClass, bool]) -> dict[QueryClass, bool]:
        missing = [name for name in QUERY_CLASSES if name not in value]
        if missing:
            raise ValueError(f"class_to_hyde must decide on every class; missing: {', '.join(missing)}")
        return {name: value[name] for name in QUERY_CLASSES}
