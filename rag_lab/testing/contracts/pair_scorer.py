"""The contract of a pair scorer: see `rag_lab.models.protocols.PairScorer`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rag_lab.models.own import given_model
from rag_lab.models.protocols import PairScorer
from rag_lab.models.providers import CROSS_ENCODERS
from rag_lab.testing.contracts.module import ModuleContract

PAIRS = [
    ("how often is the filter of the oven changed", "the filter of the oven is changed monthly"),
    ("how often is the filter of the oven changed", "the press runs at 140 bar"),
    ("what pressure does the press need", "the press runs at 140 bar"),
    ("what pressure does the press need", ""),
]
_ROUNDING = 1e-4  # of float32: batches of another size add in another order


class PairScorerContract(ModuleContract):
    """A cross-encoder, or another model that scores pairs of a question and a passage."""

    def model(self) -> PairScorer:
        """Return it as a reranker asks it."""
        model: PairScorer = given_model(CROSS_ENCODERS, self.make())
        return model

    def identity(self) -> Mapping[str, Any]:
        """Return under what its scores are remembered."""
        return self.model().identity()

    def test_one_finite_score_a_pair_in_order_whatever_shares_the_batch(self) -> None:
        together = self._score(PAIRS)
        alone = [self._score([pair])[0] for pair in PAIRS]
        assert len(together) == len(PAIRS)
        assert all(type(score) is float and math.isfinite(score) for score in together)
        for one, other, backwards in zip(together, alone, self._score(PAIRS[::-1])[::-1], strict=True):
            assert math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
            assert math.isclose(one, backwards, rel_tol=_ROUNDING, abs_tol=_ROUNDING)

    def test_scores_differ(self) -> None:
        assert len(set(self._score(PAIRS[:3]))) > 1

    def test_no_pairs_are_no_scores(self) -> None:
        assert list(self._score([])) == []

    def _score(self, pairs: list[tuple[str, str]]) -> list[float]:
        return self.model().score(pairs)
