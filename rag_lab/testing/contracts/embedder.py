"""The contract of an embedding model: see `rag_lab.models.protocols.Embedder`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rag_lab.models.protocols import Embedder, Vectors
from rag_lab.testing.contracts.module import ModuleContract

TEXTS = ["The press runs at 140 bar.", "grease", "The oven's filter is changed every month.", "grease"]
_ROUNDING = 1e-5  # of a unit vector in float32: batches of another size add in another order


class EmbedderContract(ModuleContract):
    """An embedding model."""

    def test_documents_are_unit_rows_in_order(self) -> None:
        self._check(self._documents)

    def test_queries_are_unit_rows_in_order(self) -> None:
        model: Embedder = self.make()
        self._check(model.embed_queries)

    def test_nothing_to_embed_is_no_rows(self) -> None:
        assert self._documents([]).shape[0] == 0
        assert self._documents([]).ndim == 2

    def _documents(self, texts: Sequence[str]) -> Vectors:
        model: Embedder = self.make()
        return model.embed_documents(texts)

    def _check(self, embed: Callable[[Sequence[str]], Vectors]) -> None:
        rows = embed(TEXTS)
        assert rows.shape[0] == len(TEXTS)
        assert rows.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=_ROUNDING)
        np.testing.assert_allclose(rows, embed(TEXTS[::-1])[::-1], atol=_ROUNDING)
        np.testing.assert_allclose(rows[1], rows[3], atol=_ROUNDING)
        assert rows[0] @ rows[1] < 0.99
