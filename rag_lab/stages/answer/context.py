"""Assemble the context: numbered passages with source and page, within a budget that is never exceeded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.models.protocols import ChatModel
from rag_lab.records import Hit, Passage, Trace
from rag_lab.stages.answer.prompts import SEPARATOR, render_passage, render_passages
from rag_lab.stages.parts import Parts
from rag_lab.stages.stage import Outcome

_SHRINK = 0.95  # of the length that the token count suggests, since tokens are not spread evenly over a text
_LEAST_CHARS = 40  # a shorter piece of a passage tells a reader nothing


@dataclass(frozen=True, slots=True)
class _Size:
    tokens: int
    n_bytes: int

    def __add__(self, other: _Size) -> _Size:
        return _Size(self.tokens + other.tokens, self.n_bytes + other.n_bytes)


@dataclass(frozen=True)
class Assemble:
    """Give each of the first `final_k` parents an equal share of what is left of the budget.

    A parent that fits its share stands whole and leaves the rest to those after it; a longer one is cut to a window
    around the child that matched, so that what was found is what is read.

    Passages are counted one by one, since many questions find the same ones and counters remember what they counted.
    The whole is counted at the end: should it be longer than its parts, they are fitted again into less.
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
            "version": 4,
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
        budget = self.max_tokens
        passages = self._fill(hits, budget)
        while passages and (excess := self._worth(self._size(render_passages(passages))) - self.max_tokens) > 0:
            budget -= excess
            passages = self._fill(hits, budget)
        left_out = len(hits) - len(passages)
        reason = f"{left_out} of {len(hits)} passages did not fit {self._budget}" if left_out else ""
        return Outcome({"passages": tuple(passages)}, reason=reason)

    def _fill(self, hits: Sequence[Hit], budget: int) -> list[Passage]:
        passages: list[Passage] = []
        used = _Size(0, 0)
        for position, hit in enumerate(hits):
            spent = self._worth(used)
            fitting = self._fit(len(passages) + 1, hit, used, spent + (budget - spent) // (len(hits) - position))
            if fitting is not None:
                passages.append(fitting[0])
                used += fitting[1]
        return passages

    def _fit(self, number: int, hit: Hit, used: _Size, limit: int) -> tuple[Passage, _Size] | None:
        """Return the hit's parent, or the largest window around its child, that keeps the context within `limit`."""
        child, text = self.index.child(hit.chunk_id), self.index.text(hit)
        whole = Passage(number, hit.parent_id, hit.source, hit.page, hit.start, hit.end, text)
        centre = (child.start + child.end) // 2 - hit.start
        spent = self._worth(used)
        passage, size = whole, self._size_of(whole)
        while (worth := self._worth(used + size)) > limit:
            length = int(len(passage.text) * _SHRINK * max(limit - spent, 0) / (worth - spent))
            if length < _LEAST_CHARS:
                return None
            passage = _window(whole, centre, length)
            size = self._size_of(passage)
        return passage, size

    def _size_of(self, passage: Passage) -> _Size:
        """Return what a passage adds to those before it."""
        return self._size((SEPARATOR if passage.number > 1 else "") + render_passage(passage))

    def _size(self, text: str) -> _Size:
        return _Size(self.counter.count_tokens(text), len(text.encode()))

    def _worth(self, size: _Size) -> int:
        """Return the share of the budget that a size uses up, in tokens: bytes count as what they are worth."""
        return max(size.tokens, -(-size.n_bytes * self.max_tokens // self.max_bytes) if self.max_bytes else 0)

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


def numbered(parts: Parts) -> Assemble:
    """Return the stage for a pipeline; the model that reads the context counts its tokens."""
    answer, counter = parts.answer, parts.chat("generation")
    return Assemble(parts.index, counter, parts.rerank.final_k, answer.context_tokens, answer.context_bytes)
