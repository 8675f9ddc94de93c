"""The vector stores by name: where each is written, what it needs, and which of them may lie on a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import urlsplit

StoreName = Literal["chroma", "exact", "faiss", "qdrant", "duckdb", "milvus"]
STORE_NAMES: tuple[StoreName, ...] = get_args(StoreName)


@dataclass(frozen=True)
class StoreInfo:
    """One store: its class, the package that it imports and the distributions whose version can change results."""

    target: str  # module:class
    module: str
    distributions: tuple[str, ...]
    served: bool = False  # may lie on a server


STORES: dict[StoreName, StoreInfo] = {
    "chroma": StoreInfo("rag_lab.stores.vector.chroma:ChromaStore", "chromadb", ("chromadb",), served=True),
    "exact": StoreInfo("rag_lab.stores.vector.exact:ExactStore", "numpy", ("numpy",)),
    "faiss": StoreInfo("rag_lab.stores.vector.faiss:FaissStore", "faiss", ("faiss-cpu",)),
    "qdrant": StoreInfo("rag_lab.stores.vector.qdrant:QdrantStore", "qdrant_client", ("qdrant-client",), served=True),
    "duckdb": StoreInfo("rag_lab.stores.vector.duckdb:DuckDBStore", "duckdb", ("duckdb",)),
    "milvus": StoreInfo("rag_lab.stores.vector.milvus:MilvusStore", "milvus_lite", ("milvus-lite",)),
}


def store_url_problem(name: StoreName, url: str) -> str:
    """Return what is wrong with `url` for the store `name`, or ''."""
    if not url:
        return ""
    if not STORES[name].served:
        served = " and ".join(name for name in STORE_NAMES if STORES[name].served)
        return f"{name} has no server, so url must be empty; {served} may have one"
    try:
        parts = urlsplit(url)
        whole = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number
        whole = False
    if not whole:
        return "url must be http://host:port or https://host:port"
    if parts.username or parts.password or parts.query:
        return "url must hold no user, password or key, because it is written into results"
    return ""
