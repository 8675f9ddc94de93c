"""How many tokens and bytes a context may have, and how passages are fitted into them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rag_lab.corpus.spans import PageStarts, page_at
from rag_lab.models.protocols import ChatModel
from rag_lab.records import Passage
from rag_lab.stages.answer.prompts import SEPARATOR, render_passage, render_passages

_SHRINK = 0.95  # of the length that the token count suggests, since tokens are not spread evenly over a text
_LEAST_CHARS = 40  # a shorter piece of a passage tells a reader nothing


Size = tuple[int, int]  # tokens, and bytes of UTF-8


class Wanted(NamedTuple):
    """A passage in full, with the character of its text around which it is cut where it has to be.

    Of a file whose pages are one text, `page_starts` says on which page a window of it begins.
    """

    passage: Passage
    centre: int
    page_starts: PageStarts = ()


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
        return self._fill(wanted, self.max_tokens, is_shared=True)

    def in_turn(self, wanted: Sequence[Wanted]) -> list[Passage]:
        """Give each all that is left: the first ones stand whole, the next is cut, and those after it are left out."""
        return self._fill(wanted, self.max_tokens, is_shared=False)

    def excess(self, passages: Sequence[Passage]) -> int:
        """Return by how many tokens these passages, as they are numbered, are too long; 0 or less where they fit."""
        return self._worth(self._size(render_passages(passages))) - self.max_tokens if passages else 0

    def left_out(self, n: int, given: Sequence[Passage]) -> str:
        """Say how many of `n` passages are not among those given; "" where all are."""
        missing = n - len(given)
        limits = f"{self.max_tokens} tokens" + (f" and {self.max_bytes} bytes" if self.max_bytes else "")
        return f"{missing} of {n} passages did not fit {limits}" if missing else ""

    def _fill(self, wanted: Sequence[Wanted], budget: int, *, is_shared: bool) -> list[Passage]:
        passages: list[Passage] = []
        used = (0, 0)
        for position, one in enumerate(wanted):
            spent = self._worth(used)
            n_sharing = len(wanted) - position if is_shared else 1
            fitting = self._fit(len(passages) + 1, one, used, spent + (budget - spent) // n_sharing)
            if fitting is not None:
                passages.append(fitting[0])
                used = (used[0] + fitting[1][0], used[1] + fitting[1][1])
            if not is_shared and (fitting is None or fitting[0].parent_text):
                break
        excess = self.excess(passages)
        return self._fill(wanted, budget - excess, is_shared=is_shared) if excess > 0 else passages

    def _fit(self, number: int, wanted: Wanted, used: Size, limit: int) -> tuple[Passage, Size] | None:
        """Return the passage, or the largest window around its centre, that keeps the context within `limit`."""
        whole = replace(wanted.passage, number=number)
        spent, text = self._worth(used), whole.text
        before = SEPARATOR if number > 1 else ""
        passage, size = whole, self._size(before + render_passage(whole))
        while (worth := self._worth(used, size)) > limit:
            length = int(len(passage.text) * _SHRINK * max(limit - spent, 0) / (worth - spent))
            if length < _LEAST_CHARS:
                return None
            start = max(0, min(wanted.centre - length // 2, len(text) - length))
            end = start + length
            if start and (space := text.find(" ", start, end)) >= 0:  # it is cut between words
                start = space + 1
            if end < len(text) and (space := text.rfind(" ", start, end)) > start:
                end = space
            begin, window = whole.start + start, text[start:end]
            passage = replace(whole, start=begin, end=whole.start + end, text=window, parent_text=text)
            if wanted.page_starts:
                passage = replace(passage, page=page_at(wanted.page_starts, begin))
            size = self._size(before + render_passage(passage))
        return passage, size

    def _size(self, text: str) -> Size:
        return self.counter.count_tokens(text), len(text.encode())

    def _worth(self, *sizes: Size) -> int:
        """Return the share of the budget that sizes use up, in tokens: bytes count as what they are worth."""
        tokens, n_bytes = sum(size[0] for size in sizes), sum(size[1] for size in sizes)
        return max(tokens, -(-n_bytes * self.max_tokens // self.max_bytes) if self.max_bytes else 0)
