"""Which questions get a hypothetical document, and by whose prompt: by a rule for classes, or as the model suggests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from rag_lab.records import QueryClass, Trace
from rag_lab.stages.query.prompts import GENERAL
from rag_lab.stages.stage import Outcome

SUGGESTED: Literal["suggested"] = "suggested"


@dataclass(frozen=True)
class RouteHyde:
    """Route each question.

    `class_to_hyde` is None for `always`: every question by the general prompt. Where it is `SUGGESTED` the
    understanding decides, and the class says by whose prompt, the general one where there is none. The class rule
    overrides the suggestion.
    """

    class_to_hyde: Mapping[QueryClass, bool] | Literal["suggested"] | None

    name: ClassVar[str] = "route"
    reads: ClassVar[tuple[str, ...]] = ("query_class", "hyde_suggested")
    writes: ClassVar[tuple[str, ...]] = ("hyde_route",)
    batch_size: ClassVar[int] = 1000
    costly: ClassVar[bool] = False

    def identity(self) -> Mapping[str, Any]:
        """The class rule."""
        rule = self.class_to_hyde
        return {"version": 1, "class_to_hyde": dict(rule) if isinstance(rule, Mapping) else rule}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Decide for each trace."""
        return [self._route(trace) for trace in traces]

    def _route(self, trace: Trace) -> Outcome:
        if self.class_to_hyde is None:
            return Outcome({"hyde_route": GENERAL}, reason="always")
        if self.class_to_hyde == SUGGESTED:
            return _as_suggested(trace)
        if trace.query_class is None:
            return Outcome(status="fallback", reason="no HyDE: the question has no class")
        on = self.class_to_hyde[trace.query_class]
        updates = {"hyde_route": trace.query_class} if on else {}
        return Outcome(updates, reason=f"class {trace.query_class}: {_switch(on)}{_overruled(trace, on)}")


def _as_suggested(trace: Trace) -> Outcome:
    if trace.hyde_suggested is None:
        return Outcome(status="fallback", reason="no HyDE: the understanding suggested nothing")
    route = {"hyde_route": trace.query_class or GENERAL} if trace.hyde_suggested else {}
    return Outcome(route, reason=f"the understanding suggested it {_switch(trace.hyde_suggested)}")


def _switch(on: bool) -> str:
    return "on" if on else "off"


def _overruled(trace: Trace, on: bool) -> str:
    if trace.hyde_suggested is None or trace.hyde_suggested == on:
        return ""
    return f", against the model's suggestion ({_switch(trace.hyde_suggested)})"
