"""One reply as it is written: a thought within its budget, then the reply, held to its schema and its length."""

from __future__ import annotations

from typing import Any

from rag_lab.models.local.decoding.ending_in_time import EndingInTime
from rag_lab.models.local.decoding.schema_matcher import SchemaMatcher
from rag_lab.models.local.decoding.thought import Thought

_NEVER = -float("inf")


class ReplyGuide:
    """Says which token may come next, and when the reply is over; every token is told to it by `take`.

    `max_tokens` is of the reply alone. `ends` are the tokens that end it, which a thought cannot.
    """

    def __init__(
        self,
        max_tokens: int,
        ends: tuple[int, ...],
        matcher: SchemaMatcher | None = None,
        thought: Thought | None = None,
    ) -> None:
        self.thought_ids: list[int] = []  # with the marks
        self.reply_ids: list[int] = []
        self.over = False
        self.truncated = False  # the reply had no room left
        self.closed_early = False  # so its JSON was closed in what was left
        self.most_tokens = max_tokens + (0 if thought is None else thought.most_tokens)
        self._max_tokens = max_tokens
        self._ends = ends
        self._matcher = matcher
        self._ending = None if matcher is None else EndingInTime(matcher)
        self._thought = thought

    @property
    def problem(self) -> str:
        """Why the reply could not be held to its schema to the end, or ''."""
        return "" if self._matcher is None else self._matcher.problem

    def restrict(self, scores: Any) -> None:
        """Take from `scores`, a tensor (vocabulary,), every token that may not come next."""
        thought = self._thought
        if self.over:
            return
        if thought is not None and thought.forced is not None:
            scores.fill_(_NEVER)
            scores[thought.forced] = 0.0
        elif thought is not None and thought.is_open:
            scores[list(self._ends)] = _NEVER
        elif self._matcher is not None and self._ending is not None:
            self._restrict_reply(self._matcher, self._ending, scores)

    def take(self, token: int) -> None:
        """Go on by the token that was written."""
        thought = self._thought
        if self.over:
            return
        if thought is not None and (thought.is_open or token == self._opening):
            thought.take(token)
            self.thought_ids.append(token)
        else:
            self.reply_ids.append(token)
            self._reply(token)

    @property
    def _opening(self) -> int | None:
        return None if self._thought is None or self.reply_ids else self._thought.opening

    def _restrict_reply(self, matcher: SchemaMatcher, ending: EndingInTime, scores: Any) -> None:
        import torch

        allowed = matcher.allowed(scores.shape[0])
        if self._opening is not None:
            allowed[self._opening] = True
        scores.masked_fill_(~torch.from_numpy(allowed).to(scores.device), _NEVER)
        always = {token for token in (*self._ends, self._opening) if token is not None and allowed[token]}
        ending.restrict(scores, self._max_tokens - len(self.reply_ids), always)

    def _reply(self, token: int) -> None:
        if self._ending is not None:
            self._ending.take(token)
        if token in self._ends:
            self._finish()
            return
        if self._matcher is not None:
            self._matcher.take(token)
            if self._matcher.complete:
                self._finish()
        if not self.over and len(self.reply_ids) >= self._max_tokens:
            self.truncated = True
            self._finish()

    def _finish(self) -> None:
        self.over = True
        self.closed_early = self._ending is not None and self._ending.has_cut
        self.truncated = self.truncated or self.closed_early
