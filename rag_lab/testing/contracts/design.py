"""The contract of a design: see `rag_lab.experiment.designs.registry`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from rag_lab._kit.own_code import OwnCode
from rag_lab._kit.registry import own
from rag_lab.config import PipelineConfig
from rag_lab.experiment.design import expand
from rag_lab.experiment.designs.registry import DESIGNS
from rag_lab.testing.contracts.module import ModuleContract


class DesignContract(ModuleContract):
    """A design: `(base, factors) -> list of {dotted key: value}`, the first of which is the baseline."""

    def factors(self) -> dict[str, Sequence[Any]]:
        """Return factors of which it can make variants; no value stands in one twice."""
        return {"query.hyde": ["none", "always"], "rerank.final_k": [5, 3, 8], "answer.thinking": [False, True]}

    def identity(self) -> Mapping[str, Any]:
        """Return what tells it from other designs."""
        return OwnCode(own(self.make(), DESIGNS), "design").identity()

    def test_its_variants_can_run_and_are_the_same_again(self) -> None:
        once, again = (expand(PipelineConfig(), self.factors(), self.make()) for _ in range(2))
        assert once == again
        assert once.baseline.changes == {}

    def test_it_makes_no_variant_twice(self) -> None:
        assert expand(PipelineConfig(), self.factors(), self.make()).notices == ()

    def test_it_does_not_change_the_base_or_the_factors(self) -> None:
        base, factors = PipelineConfig().flat(), self.factors()
        given = deepcopy((base, factors))
        self.make()(base, factors)
        assert (base, factors) == given
