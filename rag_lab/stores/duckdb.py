"""DuckDB: vectors as fixed arrays in a table, compared one by one in SQL."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rag_lab.models.protocols import Vectors
from rag_lab.stores.engine import EngineStore
from rag_lab.stores.rows import Cosines, Numbers, Positions, batches, padded

_FILE = "vectors.duckdb"
_ROWS_AT_ONCE = 50_000
_SEARCH = """
    SELECT number, max_by(position, cosine, {n}) AS positions, max(cosine, {n}) AS cosines
    FROM (
        SELECT number, position, array_inner_product(vector, query) AS cosine
        FROM children, asked
        {where}
    )
    GROUP BY number ORDER BY number
"""


class DuckDBStore(EngineStore):
    """One table `children (position, label, vector)` in one file. Several processes may read it at the same time."""

    exact: ClassVar[bool] = True

    def _fill(self) -> None:
        import duckdb

        dim = self.rows.vectors.shape[1]
        with duckdb.connect(str(self.path / _FILE)) as database:
            database.execute(f"CREATE TABLE children (position BIGINT, label INTEGER, vector FLOAT[{dim}])")
            for part in batches(len(self.rows), _ROWS_AT_ONCE):
                vectors, labels = self.rows.vectors[part], self.rows.label_numbers[part]
                positions = np.arange(part.start, part.start + len(labels))
                database.register("rows", _table(position=positions, label=labels, vector=vectors))
                database.execute("INSERT INTO children SELECT position, label, vector FROM rows")

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> tuple[Positions, Cosines]:
        where = "" if numbers is None else f"WHERE label IN ({', '.join(map(str, numbers))})"
        cursor = self._database.cursor()
        cursor.register("asked", _table(number=np.arange(len(queries)), query=queries))
        found = cursor.execute(_SEARCH.format(n=n_wanted, where=where)).fetchall()
        return padded([row[1] for row in found], [row[2] for row in found], n_wanted)

    @cached_property
    def _database(self) -> Any:
        import duckdb

        return duckdb.connect(str(self.path / _FILE), read_only=True)


def _table(**columns: Any) -> Any:
    """Return an Arrow table; two-dimensional columns become fixed arrays."""
    import pyarrow as pa

    return pa.table(
        {
            name: pa.FixedSizeListArray.from_arrays(pa.array(column.ravel()), column.shape[1])
            if column.ndim == 2
            else pa.array(column)
            for name, column in columns.items()
        }
    )
