"""Ends a reply within its length: what it could not be ended after any more is not written."""

from __future__ import annotations

from typing import Any

from rag_lab.models.local.decoding.schema_matcher import SchemaMatcher

_NEVER = -float("inf")
_LIKELIEST = 16  # tokens that are looked at
_MUCH_LESS_LIKELY = 7.0  # in logits: a thousandth


class EndingInTime:
    """Where the room of a reply comes to an end, leaves only tokens after which its JSON can still be closed.

    Where not even the shortest reply fits into its length, it is written as if there were room.
    """

    def __init__(self, matcher: SchemaMatcher) -> None:
        self.has_cut = False  # the model would rather have written something else
        self._matcher = matcher
        self._end: list[int] | None = None  # a way to the end that is known already
        self._ends: dict[int, list[int]] = {}  # by the token that may come next, where not all may
        self._scores: dict[int, float] = {}
        self._refused = _NEVER

    def restrict(self, scores: Any, left: int, always: set[int]) -> None:
        """Take from `scores` (vocabulary,) what needs more than `left` tokens to the end; `always` needs none."""
        self._ends, self._scores, self._refused = {}, {}, _NEVER
        end = _shorter(self._matcher.shortest_end(), self._end)
        if end is None or not len(end) <= left <= len(end) + self._matcher.most_begun:
            return
        self._ends = {token: [] for token in always} if not end else {end[0]: end[1:]}
        self._look_at_likeliest(scores, left - 1, always)
        self._scores |= {token: float(scores[token]) for token in self._ends}
        found = scores[list(self._scores)]
        scores.fill_(_NEVER)
        scores[list(self._scores)] = found

    def take(self, token: int) -> None:
        """Go on by the token that was written."""
        self.has_cut = self.has_cut or self._scores.get(token, self._refused) < self._refused
        self._end = self._ends.get(token)

    def _look_at_likeliest(self, scores: Any, left: int, always: set[int]) -> None:
        best = scores.topk(min(_LIKELIEST, scores.shape[0]))
        least = max(float(best.values[0]) - _MUCH_LESS_LIKELY, -1e30)
        for token, score in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            if score < least:
                break
            end = [] if token in always else _shorter(self._matcher.shortest_end(token), self._ends.get(token))
            if end is not None and len(end) <= left:
                self._scores[token] = score
                self._ends |= {} if token in always else {token: end}
            else:
                self._refused = max(self._refused, score)


def _shorter(one: list[int] | None, other: list[int] | None) -> list[int] | None:
    return min((end for end in (one, other) if end is not None), key=len, default=None)
