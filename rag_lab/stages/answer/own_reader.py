"""A reader of one's own: `(question, passages) -> str or Answer`. It cites passages by number, from 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab._kit.own_code import OwnCodeError
from rag_lab.records import Answer, Citation, Trace
from rag_lab.stages.answer.parse import checked_citations, is_abstention
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class ReaderPlace:
    """The user's question and the context's texts go out, an answer comes back."""

    name: ClassVar[str] = "generate"
    reads: ClassVar[tuple[str, ...]] = ("question.text", "passages")
    writes: ClassVar[tuple[str, ...]] = ("answer",)

    def identity(self) -> Mapping[str, Any]:
        """Nothing but the version."""
        return {"version": 1}

    def arguments(self, trace: Trace) -> tuple[Any, ...] | Outcome:
        """Return the question and the texts."""
        return trace.question.text, [passage.text for passage in trace.passages]

    def outcome(self, trace: Trace, returned: Any) -> Outcome:
        """Set the answer; citations that name no passage of the context are kept as rejected, as a model's are."""
        answer = Answer(returned) if isinstance(returned, str) else returned
        if not isinstance(answer, Answer) or not isinstance(answer.text, str):
            raise OwnCodeError(f"the reader returned {type(returned).__name__} where text or an Answer is due")
        text = answer.text.strip()
        if not text:
            raise OwnCodeError("the answer of the reader is empty")
        cited = [_plain(citation) for citation in answer.citations]
        accepted, rejected = checked_citations(cited, trace.passages)
        abstained = answer.abstained or is_abstention(text)
        refused = (*answer.rejected_citations, *rejected)
        return Outcome({"answer": Answer(text, accepted, refused, answer.thinking, abstained)})


def _plain(citation: Any) -> Any:
    """Return a citation as the parser reads it."""
    if not isinstance(citation, Citation):
        return citation
    return {"passage": citation.number, "quote": citation.quote} if citation.quote else citation.number
