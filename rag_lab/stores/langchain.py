"""A LangChain vector store, searched like a store of the workbench.

    embeddings = PrecomputedEmbeddings(index.vector_store)
    mine = LangChainStore.fill(index.vector_store, InMemoryVectorStore(embeddings), by_label)
    pipeline = Pipeline.on(index.searched_in(mine, "my store"), embedder, config)

The workbench embeds; the store gets the vectors by way of its own `Embeddings`. So nothing is asked of it but
the two methods that every LangChain store has, `add_texts` and `similarity_search`.
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Self
from uuid import NAMESPACE_OID, uuid5

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore as LangChainVectorStore

from rag_lab.errors import StoreError
from rag_lab.models.protocols import Vectors
from rag_lab.stores.engine import Nearest, Numbers, SearchedRows, batches

LabelFilter = Callable[[frozenset[str]], Mapping[str, Any]]

_ROWS_AT_ONCE = 1_000


class PrecomputedEmbeddings(Embeddings):
    """LangChain embeddings that hand out what was embedded before: `row 7` of a store, `query 7` of a search."""

    def __init__(self, store: SearchedRows) -> None:
        self._rows = store.rows
        self.queries: Vectors = self._rows.vectors[:0]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors that the texts name."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the vector that the text names; a text that names none is a store's probe of the dimension."""
        kind, _, number = text.partition(" ")
        if kind == "query" and number.isdecimal():
            return [float(value) for value in self.queries[int(number)]]
        return [float(value) for value in self._rows.vectors[int(number) if number.isdecimal() else 0]]


class LangChainStore(SearchedRows):
    """Any LangChain vector store, made with `PrecomputedEmbeddings` as its embeddings, set to compare by cosine.

    `label_filter` makes of the allowed labels the arguments of `similarity_search` that keep to them, as in `lambda
    labels: {"filter": {"label": {"$in": sorted(labels)}}}`. Without it, a restricted search is refused.
    """

    exact: ClassVar[bool] = False  # for all that is known of it

    def __init__(
        self,
        path: Path,
        store: LangChainVectorStore,
        embeddings: PrecomputedEmbeddings,
        label_filter: LabelFilter | None = None,
    ) -> None:
        super().__init__(path)
        digest = sha256(self.rows.vectors.data)
        digest.update(self.rows.label_numbers.data)
        digest.update("\0".join(self.rows.labels).encode())
        self._digest = digest.hexdigest()  # of vectors and labels, row by row
        self._store = store
        self._embeddings = embeddings
        self._label_filter = label_filter

    @classmethod
    def fill(cls, source: SearchedRows, store: LangChainVectorStore, label_filter: LabelFilter | None = None) -> Self:
        """Add what `source` holds and `store` does not, and return it for searching; ids are of the rows' digest."""
        embeddings = store.embeddings
        if not isinstance(embeddings, PrecomputedEmbeddings):
            raise StoreError(
                f"{type(store).__name__} embeds with {type(embeddings).__name__}; make it with "
                "PrecomputedEmbeddings as its embeddings, so that it searches the workbench's vectors."
            )
        built = cls(source.path, store, embeddings, label_filter)
        rows = source.rows
        for part in batches(len(rows), _ROWS_AT_ONCE):
            numbers = range(len(rows))[part]
            ids = {str(uuid5(NAMESPACE_OID, f"{built._digest} {row}")): row for row in numbers}  # some take no others
            try:
                there = {document.id for document in store.get_by_ids(list(ids))}
            except NotImplementedError:  # then adding one again puts it in its own place
                there = set()
            if new := {one: row for one, row in ids.items() if one not in there}:
                labels = {row: rows.labels[rows.label_numbers[row]] for row in new.values()}
                about = [{"row": row, "label": label, "rows": built._digest} for row, label in labels.items()]
                store.add_texts([f"row {row}" for row in labels], about, ids=list(new))
        return built

    def _nearest(self, queries: Vectors, n_wanted: int, numbers: Numbers | None) -> Nearest:
        name = type(self._store).__name__
        only: Mapping[str, Any] = {}
        if numbers is not None:
            if self._label_filter is None:
                raise StoreError(
                    f"{name} has no label_filter, so it cannot be held to what an asker may see; give LangChainStore "
                    "one, or ask without restriction."
                )
            only = self._label_filter(frozenset(self.rows.labels[number] for number in numbers))
        self._embeddings.queries = queries
        documents = [self._store.similarity_search(f"query {i}", n_wanted, **only) for i in range(len(queries))]
        found = [[int(document.metadata["row"]) for document in some] for some in documents]
        holds = {document.metadata.get("rows") for some in documents for document in some}
        if holds - {self._digest} or any(len(set(rows)) < len(rows) for rows in found):
            raise StoreError(
                f"{name} holds other rows than those of this index; empty it, or give each index a store for itself."
            )
        # A store that withholds children, or shows others, has no filter, or one that comes late.
        short = min((len(rows) for rows in found), default=n_wanted)
        if short != n_wanted:
            raise StoreError(
                f"{name} returned {short} of {n_wanted} children that it was asked for and has; where it filters after "
                "the search, let label_filter also set how many it fetches before."
            )
        if numbers is not None and not self.rows.mask(numbers)[np.array(found, np.int64)].all():
            raise StoreError(f"{name} returned a child that label_filter should have kept out; mend label_filter.")
        return self.rows.rank(queries, np.array(found, np.int64), n_wanted)
