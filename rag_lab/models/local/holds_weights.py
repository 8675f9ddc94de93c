"""The contract of a model that computes here: what a process that holds it for others needs to know."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class HoldsWeights(Protocol):
    """A model whose weights are loaded into the process that asks it."""

    @property
    def weights_held(self) -> str:
        """Which weights are loaded, and how: models that say the same share them."""

    @property
    def runs_on(self) -> str:
        """The device that was asked for: `cpu`, `cuda`, ..., or '' for a GPU where there is one."""

    def load(self) -> None:
        """Load the weights now rather than at the first call.

        Raises:
            ModelError: if they are missing or do not load.
        """
