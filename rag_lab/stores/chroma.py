"""Chroma, in the folder or on a server: an HNSW graph by cosine (Malkov and Yashunin 2018), for recall before speed.

At the sizes of a workbench (up to some ten thousand children) a wide search finds the true neighbours, so that a
variant's score does not depend on the luck of the graph.

Chroma writes into its files whenever it is opened. So each process that reads the store works on a copy of its own: the
index stays as it was written, and can be checked.
"""

import shutil
import sqlite3
import tempfile
import weakref
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from rag_lab._kit.machine import scratch_folder
from rag_lab.models.protocols import Vectors
from rag_lab.stores.engine import ServedStore, Server
from rag_lab.stores.rows import Cosines, Numbers, Positions, batches, padded

_COLLECTION = "children"
_FOLDER = "chroma"
_DATABASE = "chroma.sqlite3"
_HNSW = {
    "space": "cosine",
    "ef_construction": 200,
    "max_neighbors": 32,
    "ef_search": 800,
    "num_threads": 1,  # parallel insertion makes another graph each time
    "batch_size": 100,
    "sync_threshold": 100,  # writes the graph to disk; otherwise every opening builds it again from the log
}


class ChromaStore(ServedStore):
    """One Chroma collection, whose ids are row numbers. Several processes may read it at the same time."""

    exact: ClassVar[bool] = False

    def _write(self, server: Server | None) -> None:
        client = _client(server or self.path / _FOLDER)
        # Labels too, where there are several to choose from.
        has_labels, name = len(self.rows.labels) > 1, server.collection if server else _COLLECTION
        collection = client.create_collection(name, embedding_function=None, configuration={"hnsw": _HNSW})
        for part in batches(len(self.rows), client.get_max_batch_size()):
            numbers = self.rows.label_numbers[part].tolist()
            collection.add(
                ids=[str(part.start + offset) for offset in range(len(numbers))],
                embeddings=self.rows.vectors[part],
                metadatas=[{"label": number} for number in numbers] if has_labels else None,
            )
        if server is None:
            client.close()
            with closing(sqlite3.connect(self.path / _FOLDER / _DATABASE, isolation_level=None)) as connection:
                connection.execute("VACUUM")  # gives back the room of Chroma's log, which is empty by now: nine tenths

    def _n_rows(self, server: Server) -> int | None:
        client = _client(server)
        if server.collection not in [found.name for found in client.list_collections()]:
            return None
        return int(client.get_collection(server.collection, embedding_function=None).count())

    def _delete(self, server: Server) -> None:
        _client(server).delete_collection(server.collection)

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        where = None if numbers is None else {"label": {"$in": list(numbers)}}
        reply = self._collection.query(query_embeddings=queries, n_results=n_wanted, where=where, include=["distances"])
        rows = [[int(name) for name in found] for found in reply["ids"]]
        return padded(rows, [[1 - far for far in distances] for distances in reply["distances"]], n_wanted)

    @cached_property
    def _collection(self) -> Any:
        if self.server is None:
            scratch = scratch_folder("chroma")  # the copy goes with this object, or when the process ends
            client = _client(shutil.copytree(self.path / _FOLDER, Path(scratch.name) / _FOLDER))
            weakref.finalize(self, _close, client, scratch)
            return client.get_collection(_COLLECTION, embedding_function=None)
        return _client(self._served(self.server)).get_collection(self.server.collection, embedding_function=None)


def _close(client: Any, scratch: tempfile.TemporaryDirectory[str]) -> None:
    client.close()
    scratch.cleanup()


def _client(place: Server | Path) -> Any:
    import chromadb
    from chromadb.config import Settings

    # A .env of the working folder names classes to import.
    settings = Settings(_env_file=None, anonymized_telemetry=False)
    if isinstance(place, Server):
        return chromadb.HttpClient(*place.address, settings=settings)
    return chromadb.PersistentClient(str(place), settings=settings)
