"""The part of a configuration that says what orders the merged candidates."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from rag_lab._kit.config_section import Section
from rag_lab.stages.rerank.rerankers import RERANKERS


class RerankConfig(Section):
    """What orders the merged candidates, and how many reach the reader."""

    name: Annotated[str, AfterValidator(RERANKERS.check), RERANKERS] = Field(
        "none", description="the reranker, or one of your own as module:Class"
    )
    input_limit: int = Field(20, ge=1, le=1000, description="candidates after merging")
    passage: Literal["child", "parent"] = Field("child", description="the text that a reranker reads")
    final_k: int = Field(5, ge=1, le=100, description="parents that reach the prompt; the reranker keeps 2 x final_k")
    retrieval_weight: float = Field(
        1.0, ge=0, le=1e6, description="weight of the retrieval score beside the query likelihood"
    )
