"""The part of a configuration that says which vector store holds the children."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from rag_lab._kit.config_section import Section
from rag_lab.stores.vector.names import VECTOR_STORES, store_url_problem


class StoreConfig(Section):
    """Which vector store holds the children."""

    name: Annotated[str, VECTOR_STORES] = Field(
        "chroma", description="the vector store; one of your own is module:Class"
    )
    url: str = Field("", description="server of the store; empty keeps the vectors in the index's folder")

    @field_validator("name")
    @classmethod
    def _is_store(cls, value: str) -> str:
        return VECTOR_STORES.check(value)

    @model_validator(mode="after")
    def _url_fits(self) -> StoreConfig:
        problem = store_url_problem(self.name, self.url)
        if problem:
            raise ValueError(problem)
        return self
