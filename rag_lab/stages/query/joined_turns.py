"""The turns before a question and the question as one text: what any rewriter of follow-up questions has to beat.

In conversational search the plainest baseline (Dalton et al. 2020, "TREC CAsT 2019: The conversational assistance
track overview", section 5): no model reads the conversation, its words are searched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.records import Trace
from rag_lab.stages.parts import Parts
from rag_lab.stages.query.rewrite import REWRITE, in_context
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class JoinedTurns:
    """Search what is remembered of the conversation, followed by the user's wording."""

    name: ClassVar[str] = REWRITE
    reads: ClassVar[tuple[str, ...]] = ("question.text", "remembered")
    writes: ClassVar[tuple[str, ...]] = ("search_query",)
    batch_size: ClassVar[int] = 1000
    costly: ClassVar[bool] = False

    def identity(self) -> Mapping[str, Any]:
        """Nothing but the version."""
        return {"version": 1, "rewrite": "joined"}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Join the texts of each trace."""
        return [Outcome({"search_query": in_context(trace)}, seconds=0.0) for trace in traces]


def joined(_: Parts) -> JoinedTurns:
    """Return the stage that searches the remembered turns and the question as one text."""
    return JoinedTurns()
