"""Assemble the context: numbered passages with source and page, within a budget of tokens and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rag_lab._kit.custom_code import CustomCodeError
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.corpus.spans import PageStarts, page_at
from rag_lab.models.protocols import ChatModel
from rag_lab.records import Hit, Passage, Trace
from rag_lab.stages.answer.prompts import SEPARATOR, render_passage, render_passages
from rag_lab.stages.custom import CustomStage, stage_of
from rag_lab.stages.kinds import CONTEXTS
from rag_lab.stages.parts import Parts
from rag_lab.stages.stage import BuiltInStage, Outcome, Stage

_SHRINK = 0.95  # of the length that the token count suggests, since tokens are not spread evenly over a text
_LEAST_CHARS = 40  # a shorter piece of a passage tells a reader nothing


def context_stage(parts: Parts) -> Stage:
    """Return what assembles the context."""
    return stage_of(
        CONTEXTS,
        "context",
        parts.answer.context,
        parts,
        lambda code: CustomContext(code, parts.index, budget_of(parts), parts.rerank.final_k),
    )


@dataclass(frozen=True)
class Assemble(BuiltInStage):
    """Give each of the first `final_k` parents an equal share of what is left of the budget.

    A parent that fits its share stands whole and leaves the rest to those after it; a longer one is cut to a window
    around the child that matched, so that what was found is what is read.
    """

    index: CorpusIndex
    budget: ContextBudget
    final_k: int

    VERSION = 4
    name = "context"
    reads = ("ranked",)
    writes = ("passages",)
    batch_size = 32
    costly = True

    def outcome(self, trace: Trace) -> Outcome:
        """Assemble the context of one trace."""
        hits = trace.ranked[: self.final_k]
        passages = self.budget.shared([self._around_child(hit) for hit in hits])
        return Outcome({"passages": tuple(passages)}, reason=self.budget.left_out(len(hits), passages))

    def _around_child(self, hit: Hit) -> Wanted:
        """Return the hit's parent, around the middle of its child."""
        child, text = self.index.chunks.child(hit.chunk_id), self.index.text(hit)
        whole = Passage(0, hit.parent_id, hit.source, hit.page, hit.start, hit.end, text)
        return Wanted(whole, (child.start + child.end) // 2 - hit.start, self.index.page_starts(hit.source))


def retrieved(parts: Parts) -> Assemble:
    """Return the stage for a pipeline."""
    return Assemble(parts.index, budget_of(parts), parts.rerank.final_k)


@dataclass(frozen=True)
class CustomContext(CustomStage):
    """`(question, passages) -> texts`: a text for each passage, None for one to leave out.

    What is returned is numbered here, within the budget of the built-in context. Passages that no longer fit are left
    out from the end, which the record says.
    """

    index: CorpusIndex
    budget: ContextBudget
    final_k: int

    name = "context"
    reads = ("question.text", "ranked")
    writes = ("passages",)

    def arguments(self, trace: Trace) -> tuple[Any, ...] | Outcome:
        """Return the user's question and the texts of the first hits."""
        hits = trace.ranked[: self.final_k]
        if not hits:
            return Outcome({"passages": ()}, seconds=0.0)
        return trace.question.text, [self.index.text(hit) for hit in hits]

    def accept(self, trace: Trace, returned: Any) -> Outcome:
        """Set the passages that are read."""
        hits = trace.ranked[: self.final_k]
        texts = _texts(returned, len(hits))
        kept = [(hit, text) for hit, text in zip(hits, texts, strict=True) if text]
        passages = []
        for number, (hit, text) in enumerate(kept, start=1):
            whole = self.index.text(hit)
            cut_from = "" if text == whole else whole
            passages.append(Passage(number, hit.parent_id, hit.source, hit.page, hit.start, hit.end, text, cut_from))
        while not self.budget.holds(passages):
            passages.pop()
        left_out = len(kept) - len(passages)
        reason = f"{left_out} of {len(kept)} passages did not fit the budget" if left_out else ""
        return Outcome({"passages": tuple(passages)}, reason=reason)


def _texts(returned: Any, n: int) -> list[str]:
    if isinstance(returned, str) or not isinstance(returned, Iterable):
        raise CustomCodeError(f"the context returned {type(returned).__name__} where a text for each passage is due")
    texts = ["" if text is None else text for text in returned]
    if len(texts) != n:
        raise CustomCodeError(f"the context returned {len(texts)} texts for {n} passages")
    if strangers := [type(text).__name__ for text in texts if not isinstance(text, str)]:
        raise CustomCodeError(f"the context returned {strangers[0]} where a text is due")
    return texts


class Wanted(NamedTuple):
    """A passage in full, with the character of its text around which it is cut where it has to be.

    Of a file whose pages are one text, `page_starts` says on which page a window of it begins.
    """

    passage: Passage
    centre: int
    page_starts: PageStarts = ()

    def on_its_page(self, window: Passage) -> Passage:
        """Return a window of the passage with the page on which it begins."""
        return replace(window, page=page_at(self.page_starts, window.start)) if self.page_starts else window


@dataclass(frozen=True, slots=True)
class _Size:
    tokens: int
    n_bytes: int

    def __add__(self, other: _Size) -> _Size:
        return _Size(self.tokens + other.tokens, self.n_bytes + other.n_bytes)


@dataclass(frozen=True)
class ContextBudget:
    """How much the model that reads the context may be given; it counts the tokens itself.

    Passages are counted one by one, since many questions find the same ones and counters remember what they counted.
    The whole is counted at the end: should it be longer than its parts, they are fitted again into less.
    """

    counter: ChatModel
    max_tokens: int
    max_bytes: int = 0  # of UTF-8; 0 is no limit

    def shared(self, wanted: Sequence[Wanted]) -> list[Passage]:
        """Give each an equal share of what is left; one that fits it stands whole and leaves the rest to the others.

        A longer one is cut to a window around its centre. One that would be too short to say anything is left out.
        """
        return self._whole_counted(wanted, is_shared=True)

    def in_turn(self, wanted: Sequence[Wanted]) -> list[Passage]:
        """Give each all that is left: the first ones stand whole, the next is cut, and those after it are left out."""
        return self._whole_counted(wanted, is_shared=False)

    def holds(self, passages: Sequence[Passage]) -> bool:
        """Tell whether these passages, as they are numbered, fit."""
        return not passages or self._worth(self._size(render_passages(passages))) <= self.max_tokens

    def left_out(self, n: int, given: Sequence[Passage]) -> str:
        """Say how many of `n` passages are not among those given; "" where all are."""
        missing = n - len(given)
        return f"{missing} of {n} passages did not fit {self}" if missing else ""

    def __str__(self) -> str:
        return f"{self.max_tokens} tokens" + (f" and {self.max_bytes} bytes" if self.max_bytes else "")

    def _whole_counted(self, wanted: Sequence[Wanted], *, is_shared: bool) -> list[Passage]:
        budget = self.max_tokens
        passages = self._fill(wanted, budget, is_shared)
        while passages and (excess := self._worth(self._size(render_passages(passages))) - self.max_tokens) > 0:
            budget -= excess
            passages = self._fill(wanted, budget, is_shared)
        return passages

    def _fill(self, wanted: Sequence[Wanted], budget: int, is_shared: bool) -> list[Passage]:
        passages: list[Passage] = []
        used = _Size(0, 0)
        for position, one in enumerate(wanted):
            spent = self._worth(used)
            n_sharing = len(wanted) - position if is_shared else 1
            fitting = self._fit(len(passages) + 1, one, used, spent + (budget - spent) // n_sharing)
            if fitting is not None:
                passages.append(fitting[0])
                used += fitting[1]
            if not is_shared and (fitting is None or fitting[0].parent_text):
                break
        return passages

    def _fit(self, number: int, wanted: Wanted, used: _Size, limit: int) -> tuple[Passage, _Size] | None:
        """Return the passage, or the largest window around its centre, that keeps the context within `limit`."""
        whole = replace(wanted.passage, number=number)
        spent = self._worth(used)
        passage, size = whole, self._size_of(whole)
        while (worth := self._worth(used + size)) > limit:
            length = int(len(passage.text) * _SHRINK * max(limit - spent, 0) / (worth - spent))
            if length < _LEAST_CHARS:
                return None
            passage = wanted.on_its_page(_window(whole, wanted.centre, length))
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


def budget_of(parts: Parts) -> ContextBudget:
    """Return the budget of a pipeline; the model that reads the context counts its tokens."""
    answer = parts.answer
    return ContextBudget(parts.chat("generation"), answer.context_tokens, answer.context_bytes)


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
