"""An understanding of one's own: `(question) -> {"class", "rewrite", "hyde"}`, of which any may be left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_lab._kit.complaints import complaint_and_value, key_of
from rag_lab._kit.own_code import OwnCodeError
from rag_lab.records import QueryClass, Trace
from rag_lab.stages.stage import Outcome


class _Understanding(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    query_class: QueryClass | None = Field(None, alias="class")
    rewrite: str | None = None
    hyde: bool | None = None


@dataclass(frozen=True)
class UnderstandPlace:
    """The question's words go out; its class, a proposed rewrite and a suggestion for HyDE come back."""

    name: ClassVar[str] = "understand"
    reads: ClassVar[tuple[str, ...]] = ("question.text",)
    writes: ClassVar[tuple[str, ...]] = ("query_class", "proposed_query", "hyde_suggested")

    def identity(self) -> Mapping[str, Any]:
        """Nothing but the version."""
        return {"version": 1}

    def arguments(self, trace: Trace) -> tuple[Any, ...] | Outcome:
        """Return the question."""
        return (trace.question.text,)

    def outcome(self, trace: Trace, returned: Any) -> Outcome:
        """Set what was returned; what was left out stays open."""
        try:
            found = _Understanding.model_validate(returned)
        except ValidationError as error:
            detail = error.errors()[0]
            wrong = f"{key_of(detail)} {complaint_and_value(detail)}".strip()
            raise OwnCodeError(f'the understanding is no {{"class", "rewrite", "hyde"}}: {wrong}') from None
        proposed = (found.rewrite or "").strip() or None
        return Outcome(
            {"query_class": found.query_class, "proposed_query": proposed, "hyde_suggested": found.hyde},
        )
