"""A context of one's own: `(question, passages) -> texts`, a text for each passage, None for one to leave out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab._kit.own_code import OwnCodeError
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.records import Hit, Passage, Trace
from rag_lab.stages.answer.context_budget import ContextBudget
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class ContextPlace:
    """What was retrieved goes out, what of it is read comes back: numbered here, within the budget of the built-in one.

    Passages that no longer fit are left out from the end, which the record says.
    """

    index: CorpusIndex
    budget: ContextBudget
    final_k: int

    name: ClassVar[str] = "context"
    reads: ClassVar[tuple[str, ...]] = ("question.text", "ranked")
    writes: ClassVar[tuple[str, ...]] = ("passages",)

    def identity(self) -> Mapping[str, Any]:
        """Index (for the texts), the model that counts, and the budgets."""
        return {"version": 1, "index": self.index.digest, "final_k": self.final_k, **self.budget.identity()}

    def arguments(self, trace: Trace) -> tuple[Any, ...] | Outcome:
        """Return the user's question and the texts of the first hits."""
        hits = trace.ranked[: self.final_k]
        if not hits:
            return Outcome({"passages": ()}, seconds=0.0)
        return trace.question.text, [self.index.text(hit) for hit in hits]

    def outcome(self, trace: Trace, returned: Any) -> Outcome:
        """Set the passages that are read."""
        hits = trace.ranked[: self.final_k]
        texts = _texts(returned, len(hits))
        given = [(hit, text) for hit, text in zip(hits, texts, strict=True) if text]
        passages = [self._passage(number, hit, text) for number, (hit, text) in enumerate(given, start=1)]
        while not self.budget.holds(passages):
            passages.pop()
        left_out = len(given) - len(passages)
        reason = f"{left_out} of {len(given)} passages did not fit the budget" if left_out else ""
        return Outcome({"passages": tuple(passages)}, reason=reason)

    def _passage(self, number: int, hit: Hit, text: str) -> Passage:
        whole = self.index.text(hit)
        return Passage(
            number, hit.parent_id, hit.source, hit.page, hit.start, hit.end, text, "" if text == whole else whole
        )


def _texts(returned: Any, n: int) -> list[str]:
    if isinstance(returned, str) or not isinstance(returned, Iterable):
        raise OwnCodeError(f"the context returned {type(returned).__name__} where a text for each passage is due")
    texts = ["" if text is None else text for text in returned]
    if len(texts) != n:
        raise OwnCodeError(f"the context returned {len(texts)} texts for {n} passages")
    if strangers := [type(text).__name__ for text in texts if not isinstance(text, str)]:
        raise OwnCodeError(f"the context returned {strangers[0]} where a text is due")
    return texts
