"""Qdrant, in the process or on a server.

The embedded Qdrant compares one by one. It keeps its vectors in memory and is filled from the rows when it is opened:
its own files hold pickles and belong to one process at a time. A server builds an HNSW graph and answers from it.
"""

import os
from functools import cached_property
from typing import Any, ClassVar

from rag_lab.models.protocols import Vectors
from rag_lab.stores.engine import ServedStore, Server
from rag_lab.stores.rows import Cosines, Numbers, Positions, Rows, batches, padded

_COLLECTION = "children"
_KEY = "QDRANT_API_KEY"
_ROWS_AT_ONCE = 1_000
_TIMEOUT_S = 60
_EF_SEARCH = 800
_HNSW = {"m": 32, "ef_construct": 200}


class QdrantStore(ServedStore):
    """One collection, whose points are row numbers. A server's key is read from QDRANT_API_KEY."""

    exact: ClassVar[bool] = True  # in the process; a server approximates

    def _write(self, server: Server | None) -> None:
        if server is not None:  # else it is filled when it is opened
            _fill(_remote(server), server.collection, self.rows, with_index=True)

    def _n_rows(self, server: Server) -> int | None:
        client = _remote(server)
        if not client.collection_exists(server.collection):
            return None
        return int(client.count(server.collection, exact=True).count)

    def _delete(self, server: Server) -> None:
        _remote(server).delete_collection(server.collection)

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        from qdrant_client import models

        is_allowed = models.FieldCondition(key="label", match=models.MatchAny(any=list(numbers or ())))
        allowed = None if numbers is None else models.Filter(must=[is_allowed])
        replies = self._client.query_batch_points(
            self.server.collection if self.server else _COLLECTION,
            requests=[
                models.QueryRequest(
                    query=query,
                    limit=n_wanted,
                    filter=allowed,
                    params=models.SearchParams(hnsw_ef=max(_EF_SEARCH, n_wanted)) if self.server else None,
                )
                for query in queries.tolist()
            ],
        )
        rows = [[point.id for point in reply.points] for reply in replies]
        return padded(rows, [[point.score for point in reply.points] for reply in replies], n_wanted)

    @cached_property
    def _client(self) -> Any:
        from qdrant_client import QdrantClient

        if self.server is not None:
            return _remote(self._served(self.server))
        client = QdrantClient(":memory:")
        _fill(client, _COLLECTION, self.rows, with_index=False)
        return client


def _fill(client: Any, collection: str, rows: Rows, *, with_index: bool) -> None:
    from qdrant_client import models

    space = models.VectorParams(size=rows.vectors.shape[1], distance=models.Distance.COSINE)
    client.create_collection(collection, vectors_config=space, hnsw_config=models.HnswConfigDiff(**_HNSW))
    if with_index:
        client.create_payload_index(collection, "label", models.PayloadSchemaType.INTEGER)
    for part in batches(len(rows), _ROWS_AT_ONCE):
        labels = rows.label_numbers[part].tolist()
        points = models.Batch(
            ids=list(range(part.start, part.start + len(labels))),
            vectors=rows.vectors[part].tolist(),
            payloads=[{"label": label} for label in labels],
        )
        client.upsert(collection, points=points, wait=True)


def _remote(server: Server) -> Any:
    from qdrant_client import QdrantClient

    host, port, tls = server.address
    return QdrantClient(
        url=f"{'https' if tls else 'http'}://{host}:{port}",
        api_key=os.environ.get(_KEY),
        timeout=_TIMEOUT_S,
        check_compatibility=False,  # which would warn of an absent server before the error says it
    )
