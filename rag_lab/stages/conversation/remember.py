"""The last turns of a conversation, word for word; what was said before them is forgotten, which the record says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.records import Remembered, Trace
from rag_lab.stages.stage import Outcome

REMEMBER = "remember"


@dataclass(frozen=True)
class LastTurns:
    """Remember the last `n` turns before each question."""

    n: int

    name: ClassVar[str] = REMEMBER
    reads: ClassVar[tuple[str, ...]] = ("question.history",)
    writes: ClassVar[tuple[str, ...]] = ("remembered",)
    batch_size: ClassVar[int] = 1000
    costly: ClassVar[bool] = False

    def identity(self) -> Mapping[str, Any]:
        """How many turns."""
        return {"version": 1, "turns": self.n}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Keep the last turns of each trace."""
        return [self._keep(trace) for trace in traces]

    def _keep(self, trace: Trace) -> Outcome:
        history = trace.question.history
        kept = history[max(0, len(history) - self.n) :]
        reason = "" if len(kept) == len(history) else f"{len(kept)} of {len(history)} turns are remembered"
        return Outcome({"remembered": Remembered(len(history), kept)}, reason=reason, seconds=0.0)
