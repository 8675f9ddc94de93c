"""Milvus Lite: Milvus's engine as a library, with its flat index, which compares one by one.

A folder of Milvus Lite belongs to one process at a time. So each process that reads the store works on a copy of its
own, and variants of a sweep may run side by side.
"""

import shutil
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from rag_lab._kit.machine import scratch_folder
from rag_lab.models.protocols import Vectors
from rag_lab.stores.engine import EngineStore
from rag_lab.stores.rows import Cosines, Numbers, Positions, batches, padded

_FOLDER = "milvus"
_COLLECTION = "children"
_ROWS_AT_ONCE = 10_000


class MilvusStore(EngineStore):
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
        with MilvusLite(str(self.path / _FOLDER)) as database:
            collection = database.create_collection(_COLLECTION, schema)
            for part in batches(len(self.rows), _ROWS_AT_ONCE):
                labels, vectors = self.rows.label_numbers[part].tolist(), self.rows.vectors[part].tolist()
                collection.insert(
                    [
                        {"position": part.start + offset, "label": label, "vector": vector}
                        for offset, (label, vector) in enumerate(zip(labels, vectors, strict=True))
                    ]
                )
            collection.flush()
            collection.create_index("vector", {"index_type": "FLAT", "metric_type": "COSINE", "params": {}})

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        found = self._collection.search(
            queries.tolist(),
            top_k=n_wanted,
            expr=None if numbers is None else f"label in {list(numbers)}",
            output_fields=[],
        )
        rows = [[hit["id"] for hit in hits] for hits in found]
        return padded(rows, [[hit["distance"] for hit in hits] for hits in found], n_wanted)

    @cached_property
    def _collection(self) -> Any:
        from milvus_lite import MilvusLite

        self._scratch = scratch_folder("milvus")  # removed with this object, or when the process ends
        folder = shutil.copytree(self.path / _FOLDER, Path(self._scratch.name) / _FOLDER)
        collection = MilvusLite(str(folder)).get_collection(_COLLECTION)
        collection.load()
        return collection
