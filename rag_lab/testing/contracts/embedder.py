"""The contract of an embedding model: see `rag_lab.models.protocols.Embedder`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rag_lab.models.own import given_model
from rag_lab.models.protocols import Embedder, Vectors
from rag_lab.models.providers import EMBEDDERS
from rag_lab.testing.contracts.module import ModuleContract

TEXTS = ["The press runs at 140 bar.", "grease", "The oven's filter is changed every month.", "grease"]
_ROUNDING = 1e-5  # of a unit vector in float32: batches of another size add in another order


class EmbedderContract(ModuleContract):
    """An embedding model, one of LangChain's too."""

    def model(self) -> Embedder:
        """Return it as an index asks it."""
        model: Embedder = given_model(EMBEDDERS, self.make())
        return model

    def identity(self) -> Mapping[str, Any]:
        """Return under what its vectors are remembered."""
        return self.model().identity()

    def test_documents_are_unit_rows_in_order(self) -> None:
        self._check(self.model().embed_documents)

    def test_queries_are_unit_rows_in_order(self) -> None:
        self._check(self.model().embed_queries)

    def test_nothing_to_embed_is_no_rows(self) -> None:
        assert self.model().embed_documents([]).shape[0] == 0
        assert self.model().embed_documents([]).ndim == 2

    def _check(self, embed: Callable[[Sequence[str]], Vectors]) -> None:
        rows = embed(TEXTS)
        assert rows.shape[0] == len(TEXTS)
        assert rows.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=_ROUNDING)
        np.testing.assert_allclose(rows, embed(TEXTS[::-1])[::-1], atol=_ROUNDING)
        np.testing.assert_allclose(rows[1], rows[3], atol=_ROUNDING)
        assert rows[0] @ rows[1] < 0.99
