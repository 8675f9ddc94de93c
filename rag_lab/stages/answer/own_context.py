"""A context of one's own: `(question, passages) -> texts`, a text for each passage, None for one to leave out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab._kit.own_code import OwnCodeError
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.models.protocols import ChatModel
from rag_lab.records import Hit, Passage, Trace
from rag_lab.stages.answer.prompts import render_passages
from rag_lab.stages.stage import Outcome


@dataclass(frozen=True)
class ContextPlace:
    """What was retrieved goes out, what of it is read comes back: numbered here, within the budget of the built-in one.

    Passages that no longer fit are left out from the end, which the record says.
    """

    index: CorpusIndex
    counter: ChatModel  # the model that will read the context counts its tokens
    final_k: int
    max_tokens: int
    max_bytes: int = 0  # of UTF-8; 0 is no limit

    name: ClassVar[str] = "context"
    reads: ClassVar[tuple[str, ...]] = ("question.text", "ranked")
    writes: ClassVar[tuple[str, ...]] = ("passages",)

    def identity(self) -> Mapping[str, Any]:
        """Index (for the texts), the model that counts, and the budgets."""
        return {
            "version": 1,
            "index": self.index.digest,
            "counter": self.counter.identity(),
            "final_k": self.final_k,
            "max_tokens": self.max_tokens,
            "max_bytes": self.max_bytes,
        }

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
        while passages and not self._fits(passages):
            passages.pop()
        left_out = len(given) - len(passages)
        reason = f"{left_out} of {len(given)} passages did not fit the budget" if left_out else ""
        return Outcome({"passages": tuple(passages)}, reason=reason)

    def _passage(self, number: int, hit: Hit, text: str) -> Passage:
        whole = self.index.text(hit)
        return Passage(
            number, hit.parent_id, hit.source, hit.page, hit.start, hit.end, text, "" if text == whole else whole
        )

    def _fits(self, passages: Sequence[Passage]) -> bool:
        text = render_passages(passages)
        fits_bytes = not self.max_bytes or len(text.encode()) <= self.max_bytes
        return fits_bytes and self.counter.count_tokens(text) <= self.max_tokens


def _texts(returned: Any, n: int) -> list[str]:
    if isinstance(returned, str) or not isinstance(returned, Iterable):
        raise OwnCodeError(f"the context returned {type(returned).__name__} where a text for each passage is due")
    texts = ["" if text is None else text for text in returned]
    if len(texts) != n:
        raise OwnCodeError(f"the context returned {len(texts)} texts for {n} passages")
    if strangers := [type(text).__name__ for text in texts if not isinstance(text, str)]:
        raise OwnCodeError(f"the context returned {strangers[0]} where a text is due")
    return texts
