"""Assemble the context: numbered passages with source and page, within a budget that is never exceeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rag_lab.answer.prompts import render_passages
from rag_lab.corpus.index import CorpusIndex
from rag_lab.models.base import ChatModel
from rag_lab.records import Hit, Passage, Trace
from rag_lab.stage import Outcome

_SHRINK = 0.95  # of the length that the token count suggests, since tokens are not spread evenly over a text
_LEAST_CHARS = 40  # a shorter piece of a passage tells a reader nothing


@dataclass(frozen=True)
class Assemble:
    """Give each of the first `final_k` parents an equal share of what is left of the budget.

    A parent that fits its share stands whole and leaves the rest to those after it; a longer one is cut to a window
    around the child that matched, so that what was found is what is read.
    """

    index: CorpusIndex
    counter: ChatModel  # the model that will read the context counts its tokens
    final_k: int
    max_tokens: int
    max_bytes: int = 0  # of UTF-8; 0 is no limit

    name: ClassVar[str] = "context"
    reads: ClassVar[tuple[str, ...]] = ("ranked",)
    writes: ClassVar[tuple[str, ...]] = ("passages",)
    batch_size: ClassVar[int] = 32
    costly: ClassVar[bool] = True

    def identity(self) -> Mapping[str, Any]:
        """Index (for the texts), the model that counts, and the budgets."""
        return {
            "version": 3,
            "index": self.index.digest,
            "counter": self.counter.identity(),
            "final_k": self.final_k,
            "max_tokens": self.max_tokens,
            "max_bytes": self.max_bytes,
        }

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Assemble each trace's context."""
        return [self._assemble(trace.ranked[: self.final_k]) for trace in traces]

    def _assemble(self, hits: Sequence[Hit]) -> Outcome:
        passages: list[Passage] = []
        for position, hit in enumerate(hits):
            used = self._count(passages)
            share = used + (self.max_tokens - used) // (len(hits) - position)
            passage = self._fit(passages, hit, share)
            if passage is not None:
                passages.append(passage)
        left_out = len(hits) - len(passages)
        reason = f"{left_out} of {len(hits)} passages did not fit {self._budget}" if left_out else ""
        return Outcome({"passages": tuple(passages)}, reason=reason)

    def _fit(self, before: Sequence[Passage], hit: Hit, limit: int) -> Passage | None:
        """Return the hit's parent, or the largest window around its child, that keeps the context within `limit`."""
        child, text = self.index.child(hit.chunk_id), self.index.text(hit)
        whole = Passage(len(before) + 1, hit.parent_id, hit.source, hit.page, hit.start, hit.end, text)
        centre = (child.start + child.end) // 2 - hit.start
        used = self._count(before)
        passage = whole
        while (count := self._count([*before, passage])) > limit:
            length = int(len(passage.text) * _SHRINK * max(limit - used, 0) / (count - used))
            if length < _LEAST_CHARS:
                return None
            passage = _window(whole, centre, length)
        return passage

    def _count(self, passages: Sequence[Passage]) -> int:
        """Return the share of the budget that the passages use up, in tokens: bytes count as what they are worth."""
        if not passages:
            return 0
        text = render_passages(passages)
        tokens = self.counter.count_tokens(text)
        worth = -(-len(text.encode()) * self.max_tokens // self.max_bytes) if self.max_bytes else 0
        return max(tokens, worth)

    @property
    def _budget(self) -> str:
        return f"{self.max_tokens} tokens" + (f" and {self.max_bytes} bytes" if self.max_bytes else "")


def _window(passage: Passage, centre: int, length: int) -> Passage:
    """Return about `length` characters of the passage around `centre`, cut between words."""
    text = passage.text
    start = max(0, min(centre - length // 2, len(text) - length))
    end = start + length
    if start and (space := text.find(" ", start, end)) >= 0:
        start = space + 1
    if end < len(text) and (space := text.rfind(" ", start, end)) > start:
        end = space
    return replace(
        passage, start=passage.start + start, end=passage.start + end, text=text[start:end], parent_text=text
    )
