"""A rewriting of one's own: `(question) -> str`. The guard holds it to the question, as it does a model's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab._kit.own_code import OwnCodeError
from rag_lab.records import Trace
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class RewritePlace:
    """The question's words go out, a proposed rewrite comes back."""

    name: ClassVar[str] = "propose"
    reads: ClassVar[tuple[str, ...]] = ("question.text",)
    writes: ClassVar[tuple[str, ...]] = ("proposed_query",)

    def identity(self) -> Mapping[str, Any]:
        """Nothing but the version."""
        return {"version": 1}

    def arguments(self, trace: Trace) -> tuple[Any, ...] | Outcome:
        """Return the question."""
        return (trace.question.text,)

    def outcome(self, trace: Trace, returned: Any) -> Outcome:
        """Propose what was returned; without any text the guard falls back to the user's wording."""
        return Outcome({"proposed_query": text(returned, "the rewriting").strip() or None})


def text(returned: Any, what: str) -> str:
    """Return `returned` if it is text.

    Raises:
        OwnCodeError: if it is not.
    """
    if not isinstance(returned, str):
        raise OwnCodeError(f"{what} returned {type(returned).__name__} where text is due")
    return returned
