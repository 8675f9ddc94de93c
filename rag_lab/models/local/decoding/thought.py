"""The thought before a reply: open or not, what must be written to close it in time, and how long it is."""

from __future__ import annotations

from collections import deque

from rag_lab.models.local.decoding.thinking_marks import ThinkingMarks


class Thought:
    """A thought of at most `tokens`, its marks included, that the prompt has `opened` or the model may open first.

    Where it has not ended by itself, its closing mark is written at the end of its budget. `spaced` asks for the line
    break after a closed thought that templates write, where the model itself may not write it.
    """

    def __init__(self, marks: ThinkingMarks, tokens: int, opened: bool, spaced: bool) -> None:
        self.length = 0
        self.is_open = opened
        self.most_tokens = max(tokens, len(marks.closing))
        self._marks = marks
        self._budget = tokens
        self._spaced = spaced
        self._forced: deque[int] = deque()
        self._close_in_time()

    @property
    def opening(self) -> int | None:
        """The token by which the model may open it now, or None."""
        return None if self.is_open or self.length else self._marks.open

    @property
    def forced(self) -> int | None:
        """The one token that may come next, or None where the model is free."""
        return self._forced[0] if self._forced else None

    def take(self, token: int) -> None:
        """Go on by a token of the thought."""
        self.is_open = True
        self.length += 1
        if self._forced:
            self._forced.popleft()
            self.is_open = bool(self._forced)
        elif token == self._marks.close:
            self._forced.extend(self._marks.after if self._spaced else ())
            self.is_open = bool(self._forced)
        else:
            self._close_in_time()

    def _close_in_time(self) -> None:
        if self.is_open and self.length >= self._budget - len(self._marks.closing):
            self._forced.extend(self._marks.closing)
