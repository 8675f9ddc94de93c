"""The vector stores of other projects, each what an engine proposes of `rows`; their packages are imported when used.

Chroma, in the folder or on a server, and FAISS build an HNSW graph (Malkov and Yashunin 2018), for recall before speed.
At the sizes of a workbench (up to some ten thousand children) a wide search finds the true neighbours, so that a
variant's score does not depend on the luck of the graph. DuckDB, Milvus Lite and the embedded Qdrant compare one by
one; a server of Qdrant's builds a graph as well.

Chroma writes into its files whenever it is opened, and a folder of Milvus Lite belongs to one process at a time. So
each process that reads one of them works on a copy of its own: the index stays as it was written, and variants of a
sweep may run side by side.
"""

import importlib
import os
import shutil
import sqlite3
import weakref
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rag_lab._kit.machine import scratch_folder
from rag_lab.models.protocols import Vectors
from rag_lab.stores import engine

_COLLECTION = "children"
_NEIGHBOURS, _EF_CONSTRUCTION, _EF_SEARCH = 32, 200, 800  # of each graph
_CHROMA_HNSW = {
    "space": "cosine",
    "ef_construction": _EF_CONSTRUCTION,
    "max_neighbors": _NEIGHBOURS,
    "ef_search": _EF_SEARCH,
    "num_threads": 1,  # parallel insertion makes another graph each time
    "batch_size": 100,
    "sync_threshold": 100,  # writes the graph to disk; otherwise every opening builds it again from the log
}
_FAISS_FILE = "hnsw.faiss"
_FAISS_FEW_ROWS = 10_000
_DUCKDB_SEARCH = Path(__file__).with_name("duckdb_search.sql").read_text(encoding="utf-8")


def padded(rows: Sequence[Sequence[int]], cosines: Sequence[Iterable[float]], n_wanted: int) -> engine.Nearest:
    """Return an engine's lists as arrays, (n_queries, n_wanted): shorter ones end with row -1, cosine -inf."""
    positions = np.full((len(rows), n_wanted), -1, np.int64)
    values = np.full((len(rows), n_wanted), -np.inf)
    for number, (row, near) in enumerate(zip(rows, cosines, strict=True)):
        positions[number, : len(row)] = row
        values[number, : len(row)] = list(near)
    return positions, values


class ChromaStore(engine.ServedStore):
    """One Chroma collection, whose ids are row numbers. Several processes may read it at the same time."""

    exact: ClassVar[bool] = False

    def _write(self, server: engine.Server | None) -> None:
        client = self._connect(server or self.path / "chroma")
        # Labels too, where there are several to choose from.
        has_labels, name = len(self.rows.labels) > 1, server.collection if server else _COLLECTION
        collection = client.create_collection(name, embedding_function=None, configuration={"hnsw": _CHROMA_HNSW})
        for part in engine.batches(len(self.rows), client.get_max_batch_size()):
            numbers = self.rows.label_numbers[part].tolist()
            collection.add(
                ids=[str(part.start + offset) for offset in range(len(numbers))],
                embeddings=self.rows.vectors[part],
                metadatas=[{"label": number} for number in numbers] if has_labels else None,
            )
        if server is None:
            client.close()
            with closing(sqlite3.connect(self.path / "chroma/chroma.sqlite3", isolation_level=None)) as connection:
                connection.execute("VACUUM")  # gives back the room of Chroma's log, which is empty by now: nine tenths

    def _n_rows(self, server: engine.Server) -> int | None:
        client = self._connect(server)
        if server.collection not in [found.name for found in client.list_collections()]:
            return None
        return int(client.get_collection(server.collection, embedding_function=None).count())

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: engine.Numbers | None) -> engine.Nearest:
        where = None if numbers is None else {"label": {"$in": list(numbers)}}
        reply = self._collection.query(query_embeddings=queries, n_results=n_wanted, where=where, include=["distances"])
        rows = [[int(name) for name in found] for found in reply["ids"]]
        return padded(rows, [[1 - far for far in distances] for distances in reply["distances"]], n_wanted)

    @cached_property
    def _collection(self) -> Any:
        if self.server is not None:
            client, name = self._connect(self._served(self.server)), self.server.collection
        else:
            used = ExitStack()  # the copy goes with this object, or when the process ends
            folder = used.enter_context(scratch_folder("chroma"))
            client = self._connect(shutil.copytree(self.path / "chroma", Path(folder) / "chroma"))
            used.callback(client.close)
            weakref.finalize(self, used.close)
            name = _COLLECTION
        return client.get_collection(name, embedding_function=None)

    @staticmethod
    def _connect(server: engine.Server | Path) -> Any:
        import chromadb

        # A .env of the working folder names classes to import.
        settings = chromadb.config.Settings(_env_file=None, anonymized_telemetry=False)
        if isinstance(server, engine.Server):
            return chromadb.HttpClient(*server.address, settings=settings)
        return chromadb.PersistentClient(str(server), settings=settings)


class QdrantStore(engine.ServedStore):
    """One collection, whose points are row numbers; a server's key is QDRANT_API_KEY.

    The embedded one is filled from the rows when opened: its own files hold pickles and belong to one process.
    """

    exact: ClassVar[bool] = True  # in the process; a server approximates

    def _write(self, server: engine.Server | None) -> None:
        if server is not None:  # else it is filled when it is opened
            _fill_qdrant(self._connect(server), server.collection, self.rows, with_index=True)

    def _n_rows(self, server: engine.Server) -> int | None:
        client = self._connect(server)
        if not client.collection_exists(server.collection):
            return None
        return int(client.count(server.collection, exact=True).count)

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: engine.Numbers | None) -> engine.Nearest:
        from qdrant_client import models

        is_allowed = models.FieldCondition(key="label", match=models.MatchAny(any=list(numbers or ())))
        allowed = None if numbers is None else models.Filter(must=[is_allowed])
        width = models.SearchParams(hnsw_ef=max(_EF_SEARCH, n_wanted)) if self.server else None
        wanted = {"limit": n_wanted, "filter": allowed, "params": width}
        requests = [models.QueryRequest(query=query, **wanted) for query in queries.tolist()]
        replies = self._client.query_batch_points(self.server.collection if self.server else _COLLECTION, requests)
        rows = [[point.id for point in reply.points] for reply in replies]
        return padded(rows, [[point.score for point in reply.points] for reply in replies], n_wanted)

    @cached_property
    def _client(self) -> Any:
        from qdrant_client import QdrantClient

        if self.server is not None:
            return self._connect(self._served(self.server))
        client = QdrantClient(":memory:")
        _fill_qdrant(client, _COLLECTION, self.rows, with_index=False)
        return client

    @staticmethod
    def _connect(server: engine.Server) -> Any:
        from qdrant_client import QdrantClient

        host, port, tls = server.address
        return QdrantClient(
            url=f"{'https' if tls else 'http'}://{host}:{port}",
            api_key=os.environ.get("QDRANT_API_KEY"),
            timeout=60,
            check_compatibility=False,  # which would warn of an absent server before the error says it
        )


def _fill_qdrant(client: Any, collection: str, rows: engine.Rows, *, with_index: bool) -> None:
    from qdrant_client import models

    space = models.VectorParams(size=rows.vectors.shape[1], distance=models.Distance.COSINE)
    graph = models.HnswConfigDiff(m=_NEIGHBOURS, ef_construct=_EF_CONSTRUCTION)
    as_int8 = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
    quantization = None if rows.quantized is None else models.ScalarQuantization(scalar=as_int8)
    client.create_collection(collection, vectors_config=space, hnsw_config=graph, quantization_config=quantization)
    if with_index:
        client.create_payload_index(collection, "label", models.PayloadSchemaType.INTEGER)
    for part in engine.batches(len(rows), 1_000):
        labels = rows.label_numbers[part].tolist()
        points = models.Batch(
            ids=list(range(part.start, part.start + len(labels))),
            vectors=rows.vectors[part].tolist(),
            payloads=[{"label": label} for label in labels],
        )
        client.upsert(collection, points=points, wait=True)


class FaissStore(engine.EngineStore):
    """One graph by inner product, which of unit vectors is the cosine, in one file.

    A filter that leaves few rows is answered by comparing these, which is exact and quick; one that leaves many widens
    the search by the share that it leaves, as a graph finds few of its nodes only by an ever wider search.
    """

    exact: ClassVar[bool] = False

    def _fill(self) -> None:
        faiss: Any = importlib.import_module("faiss")  # untyped: its stubs lack what its compiled part adds
        dim, is_binary = self.rows.vectors.shape[1], self.rows.signs is not None
        if is_binary:
            graph = faiss.IndexBinaryHNSW(dim + -dim % 64, _NEIGHBOURS)
        elif self.rows.quantized is not None:
            graph = faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        else:
            graph = faiss.IndexHNSWFlat(dim, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        graph.hnsw.efConstruction = _EF_CONSTRUCTION
        n_threads = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(1)  # parallel insertion makes another graph each time
        try:
            vectors = np.ascontiguousarray(self.rows.vectors[:])
            if not is_binary:
                graph.train(vectors)
            graph.add(engine.words_of_signs(vectors).view(np.uint8) if is_binary else vectors)
        finally:
            faiss.omp_set_num_threads(n_threads)
        (faiss.write_index_binary if is_binary else faiss.write_index)(graph, str(self.path / _FAISS_FILE))

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: engine.Numbers | None) -> engine.Nearest:
        is_allowed = None if numbers is None else self.rows.mask(numbers)
        n_allowed = len(self.rows) if is_allowed is None else int(is_allowed.sum())
        if is_allowed is not None and n_allowed <= _FAISS_FEW_ROWS:
            return self.rows.scan(queries, n_wanted, numbers)
        width = max(_EF_SEARCH, n_wanted) * len(self.rows) // n_allowed
        faiss: Any = importlib.import_module("faiss")
        bits = None if is_allowed is None else np.packbits(is_allowed, bitorder="little")
        selector = None if bits is None else faiss.IDSelectorBitmap(bits)
        settings = faiss.SearchParametersHNSW(efSearch=width, sel=selector)
        if self.rows.signs is not None:
            n_best = min(n_allowed, engine.RESCORED * n_wanted)
            settings.efSearch = max(width, n_best)
            near = self._graph.search(engine.words_of_signs(queries).view(np.uint8), n_best, params=settings)[1]
            return self.rows.rank(queries, near, n_wanted)
        cosines, rows = self._graph.search(np.ascontiguousarray(queries), n_wanted, params=settings)
        return rows, cosines.astype(np.float64)

    @cached_property
    def _graph(self) -> Any:
        faiss: Any = importlib.import_module("faiss")
        read = faiss.read_index if self.rows.signs is None else faiss.read_index_binary
        return read(str(self.path / _FAISS_FILE))


class DuckDBStore(engine.EngineStore):
    """One table `children (position, label, vector)` in one file. Several processes may read it at the same time."""

    exact: ClassVar[bool] = True

    def _fill(self) -> None:
        import duckdb

        dim = self.rows.vectors.shape[1]
        with duckdb.connect(str(self.path / "vectors.duckdb")) as database:
            database.execute(f"CREATE TABLE children (position BIGINT, label INTEGER, vector FLOAT[{dim}])")
            for part in engine.batches(len(self.rows), 50_000):
                vectors, labels = self.rows.vectors[part], self.rows.label_numbers[part]
                positions = np.arange(part.start, part.start + len(labels))
                database.register("rows", _table(position=positions, label=labels, vector=vectors))
                database.execute("INSERT INTO children SELECT position, label, vector FROM rows")

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: engine.Numbers | None) -> engine.Nearest:
        where = "" if numbers is None else f"WHERE label IN ({', '.join(map(str, numbers))})"
        cursor = self._database.cursor()
        cursor.register("asked", _table(number=np.arange(len(queries)), query=queries))
        found = cursor.execute(_DUCKDB_SEARCH.format(n=n_wanted, where=where)).fetchall()
        return padded([row[1] for row in found], [row[2] for row in found], n_wanted)

    @cached_property
    def _database(self) -> Any:
        import duckdb

        return duckdb.connect(str(self.path / "vectors.duckdb"), read_only=True)


def _table(**columns: Any) -> Any:
    """Return an Arrow table; two-dimensional columns become fixed arrays."""
    import pyarrow as pa

    found = {name: pa.array(column.ravel()) for name, column in columns.items()}
    for name, column in columns.items():
        if column.ndim == 2:
            found[name] = pa.FixedSizeListArray.from_arrays(found[name], column.shape[1])
    return pa.table(found)


class MilvusStore(engine.EngineStore):
    """One collection `children (position, label, vector)`."""

    exact: ClassVar[bool] = True

    def _fill(self) -> None:
        from milvus_lite import CollectionSchema, DataType, FieldSchema, MilvusLite

        schema = CollectionSchema(
            fields=[
                FieldSchema(name="position", dtype=DataType.INT64, is_primary=True),
                FieldSchema(name="label", dtype=DataType.INT64),
                FieldSchema(name="vector", dtype=DataType.FLOAT_VECTOR, dim=self.rows.vectors.shape[1]),
            ]
        )
        with MilvusLite(str(self.path / "milvus")) as database:
            collection = database.create_collection(_COLLECTION, schema)
            for part in engine.batches(len(self.rows), 10_000):
                labels, vectors = self.rows.label_numbers[part].tolist(), self.rows.vectors[part].tolist()
                rows = enumerate(zip(labels, vectors, strict=True), start=part.start)
                collection.insert([{"position": n, "label": label, "vector": vector} for n, (label, vector) in rows])
            collection.flush()
            collection.create_index("vector", {"index_type": "FLAT", "metric_type": "COSINE", "params": {}})

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: engine.Numbers | None) -> engine.Nearest:
        allowed = None if numbers is None else f"label in {list(numbers)}"
        found = self._collection.search(queries.tolist(), top_k=n_wanted, expr=allowed, output_fields=[])
        rows = [[hit["id"] for hit in hits] for hits in found]
        return padded(rows, [[hit["distance"] for hit in hits] for hits in found], n_wanted)

    @cached_property
    def _collection(self) -> Any:
        from milvus_lite import MilvusLite

        self._scratch = scratch_folder("milvus")  # removed with this object, or when the process ends
        folder = shutil.copytree(self.path / "milvus", Path(self._scratch.name) / "milvus")
        collection = MilvusLite(str(folder)).get_collection(_COLLECTION)
        collection.load()
        return collection
