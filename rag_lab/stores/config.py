"""The part of a configuration that says which vector store holds the children."""

from __future__ import annotations

from pydantic import Field, model_validator

from rag_lab._kit.config_section import Section
from rag_lab.stores.vector.names import StoreName, store_url_problem


class StoreConfig(Section):
    """Which vector store holds the children."""

    name: StoreName = Field("chroma", description="the vector store")
    url: str = Field("", description="server of the store; empty keeps the vectors in the index's folder")

    @model_validator(mode="after")
    def _url_fits(self) -> StoreConfig:
        problem = store_url_problem(self.name, self.url)
        if problem:
            raise ValueError(problem)
        return self
