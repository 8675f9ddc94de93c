"""A stage that is switched off: it changes nothing, and its record says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.records import Trace
from rag_lab.stages.stage import Outcome

OFF = "off"  # the reason in the record of what is switched off


@dataclass(frozen=True)
class Off:
    """The absence of the step `name`."""

    name: str

    reads: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ()
    batch_size: ClassVar[int] = 10_000
    costly: ClassVar[bool] = False

    def identity(self) -> Mapping[str, Any]:
        """Nothing can change nothing."""
        return {"off": True}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Leave every trace as it is."""
        return [Outcome(reason=OFF, seconds=0.0)] * len(traces)
