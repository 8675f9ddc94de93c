"""A judge for one score of a metric of one's own: its replies are remembered, and its calls are counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_lab._kit.opened_files import unwatched
from rag_lab.evaluation.judge.replies import SEEDS_PER_REPEAT, JudgeReplies
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest


class RememberedJudge:
    """A chat model in front of `judge`. The same request of a score is one call, also where it was remembered.

    `is_troubled` tells whether a request had no reply, which another attempt may cure.
    """

    def __init__(self, judge: ChatModel, replies: JudgeReplies, repeat: int) -> None:
        self._judge, self._replies, self._first_seed = judge, replies, SEEDS_PER_REPEAT * repeat
        self._asked: dict[str, ChatReply] = {}
        self.is_troubled = False
        self.constrains_json, self.context_tokens = judge.constrains_json, judge.context_tokens

    @property
    def calls(self) -> int:
        """Requests that differ."""
        return len(self._asked)

    @property
    def seconds(self) -> float:
        """What the calls took when they were made."""
        return sum(reply.seconds for reply in self._asked.values())

    @property
    def truncated_tokens(self) -> int:
        """Tokens of all requests that the judge did not read."""
        return sum(reply.truncated_tokens for reply in self._asked.values())

    def identity(self) -> Mapping[str, Any]:
        """Return the judge's."""
        return self._judge.identity()

    def count_tokens(self, text: str) -> int:
        """Count as the judge does."""
        with unwatched():
            return self._judge.count_tokens(text)

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order.

        Raises:
            ModelError: if the judge cannot be used at all.
        """
        seeded = [replace(request, seed=request.seed + self._first_seed) for request in requests]
        self.is_troubled = True  # until it has replied
        with unwatched():  # the weights may be loaded now, and what is remembered is ours
            keys = [self._replies.key(request) for request in seeded]
            wanted = dict(zip(keys, seeded, strict=True))
            known = self._replies.recall(wanted)
            new = {key: request for key, request in wanted.items() if key not in known}
            if new:
                known |= dict(zip(new, self._replies.ask(new, self._judge.generate), strict=True))
        self._asked |= known
        self.is_troubled = any(reply.error for reply in known.values())
        return [known[key] for key in keys]
