"""The vector stores by name, what each needs, and the part of a configuration that chooses one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from rag_lab._kit.config_file import Section
from rag_lab._kit.registry import BuiltIn, Kind

Unit = Literal["child", "document"]  # what a sparse index compares with a query: a piece of a file, or the whole


@dataclass(frozen=True)
class StoreInfo:
    """One store: its class, the package that it imports and the distributions whose version can change results."""

    target: str  # module:class
    module: str
    distributions: tuple[str, ...]
    served: bool = False  # may lie on a server


STORES: dict[str, StoreInfo] = {
    "chroma": StoreInfo("rag_lab.stores.vector_stores:ChromaStore", "chromadb", ("chromadb",), served=True),
    "exact": StoreInfo("rag_lab.stores.engine:ExactStore", "numpy", ("numpy",)),
    "faiss": StoreInfo("rag_lab.stores.vector_stores:FaissStore", "faiss", ("faiss-cpu",)),
    "qdrant": StoreInfo("rag_lab.stores.vector_stores:QdrantStore", "qdrant_client", ("qdrant-client",), served=True),
    "duckdb": StoreInfo("rag_lab.stores.vector_stores:DuckDBStore", "duckdb", ("duckdb",)),
    "milvus": StoreInfo("rag_lab.stores.vector_stores:MilvusStore", "milvus_lite", ("milvus-lite",)),
}
STORE_NAMES = tuple(STORES)

VECTOR_STORES = Kind(
    "vector store",
    "rag_lab.vector_stores",
    {
        name: BuiltIn(info.target, f"vectors in {info.module}", info.module, "rag_lab[stores]")
        for name, info in STORES.items()
    },
    call="__call__(self, embeddings)",
)


class StoreConfig(Section):
    """Which vector store holds the children."""

    name: Annotated[str, VECTOR_STORES, AfterValidator(VECTOR_STORES.check)] = Field(
        "chroma", description="the vector store; a custom one is module:Class"
    )
    url: str = Field("", description="server of the store; empty keeps the vectors in the index's folder")

    @model_validator(mode="after")
    def _url_fits(self) -> StoreConfig:
        if not self.url:
            return self
        if self.name in STORES and not STORES[self.name].served:
            served = " and ".join(name for name, info in STORES.items() if info.served)
            raise ValueError(f"{self.name} has no server, so url must be empty; {served} may have one")
        try:
            parts = urlsplit(self.url)
            is_whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # a port that is no number
            is_whole = False
        if not is_whole:
            raise ValueError("url must be http://host:port or https://host:port")
        if parts.username or parts.password or parts.query:
            raise ValueError("url must hold no user, password or key, because it is written into results")
        return self
