"""A writer of hypothetical documents of one's own: `(question, query_class) -> str`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.records import Trace
from rag_lab.stages.query.own_rewriting import text
from rag_lab.stages.query.prompts import GENERAL
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class HydePlace:
    """What is searched goes out with the class that it is routed by, None for the general one; a document comes back.

    A question that is not routed to HyDE is not asked about.
    """

    name: ClassVar[str] = "hyde"
    reads: ClassVar[tuple[str, ...]] = ("search_query", "hyde_route")
    writes: ClassVar[tuple[str, ...]] = ("hypothetical",)

    def identity(self) -> Mapping[str, Any]:
        """Nothing but the version."""
        return {"version": 1}

    def arguments(self, trace: Trace) -> tuple[Any, ...] | Outcome:
        """Return the question and its class."""
        if not trace.hyde_route:
            return Outcome(reason="not routed to HyDE", seconds=0.0)
        query_class = None if trace.hyde_route == GENERAL else trace.hyde_route
        return trace.search_query or trace.question.text, query_class

    def outcome(self, trace: Trace, returned: Any) -> Outcome:
        """Set the document; without any text the question is searched without one."""
        document = text(returned, "the writer of hypothetical documents").strip()
        if not document:
            return Outcome(status="fallback", reason="searched without HyDE: nothing was written")
        return Outcome({"hypothetical": document})
