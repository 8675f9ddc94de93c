"""A module of one's own at one place of the pipeline: called for one question at a time, checked, and remembered."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from rag_lab._kit.own_code import OwnCode, OwnCodeError
from rag_lab.records import Trace
from rag_lab.stages.stage import Outcome


class Place(Protocol):
    """What a place of the pipeline gives to a module of one's own, and what it takes from it."""

    @property
    def name(self) -> str:
        """The stage's name on the trace, e.g. `rerank`."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Trace fields that the arguments are made of."""

    @property
    def writes(self) -> tuple[str, ...]:
        """Trace fields that are set from what is returned."""

    def identity(self) -> Mapping[str, Any]:
        """Whatever of the place can change the result, as JSON values: the index, how many are kept."""

    def arguments(self, trace: Trace) -> tuple[Any, ...] | Outcome:
        """Return what the module is called with, or the outcome where there is nothing to call it for."""

    def outcome(self, trace: Trace, returned: Any) -> Outcome:
        """Return what becomes of a result.

        Raises:
            OwnCodeError: if what was returned is not what this place takes.
        """


@dataclass(frozen=True)
class OwnStage:
    """Call `code` for each question with what `place` gives it. A call that gives nothing usable fails its question."""

    place: Place
    code: OwnCode

    batch_size: ClassVar[int] = 8
    costly: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The place's."""
        return self.place.name

    @property
    def reads(self) -> tuple[str, ...]:
        """The place's."""
        return self.place.reads

    @property
    def writes(self) -> tuple[str, ...]:
        """The place's."""
        return self.place.writes

    def identity(self) -> Mapping[str, Any]:
        """The module's source and parameters, and the place."""
        return {"code": self.code.identity(), "place": self.place.identity()}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Call the module for each trace."""
        return [self._call(trace) for trace in traces]

    def _call(self, trace: Trace) -> Outcome:
        arguments = self.place.arguments(trace)
        if isinstance(arguments, Outcome):
            return arguments
        started = time.perf_counter()
        try:
            outcome: Outcome = self.code.call(*arguments, accept=lambda returned: self.place.outcome(trace, returned))
        except OwnCodeError as error:
            outcome = lost(error)
        return replace(outcome, seconds=time.perf_counter() - started)


def lost(error: OwnCodeError) -> Outcome:
    """Return the outcome of a question that a module of one's own gave nothing usable for."""
    return Outcome(status="failed", reason=str(error), lasting=False)
