"""What a judge has said, by request: metrics and variants that ask the same thing share one reply.

The key holds the judge's identity and the whole request. Its seed differs by repeat and by resample, so neither is ever
answered from another's reply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property

from pydantic import TypeAdapter

from rag_lab._kit.digest import digest
from rag_lab.memory.results import Memory
from rag_lab.memory.sharing import Work
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest

Generate = Callable[[Sequence[ChatRequest]], list[ChatReply]]

SEEDS_PER_REPEAT = 1000  # a request of repeat n has a seed from n times this on

_ROOM = "judge"
_REPLY: TypeAdapter[ChatReply] = TypeAdapter(ChatReply)


class JudgeReplies:
    """Replies of one judge, for as long as this object lives, and in a memory where there is one."""

    def __init__(self, judge: ChatModel, memory: Memory | None = None) -> None:
        self._judge = judge
        self._memory = memory
        self._known: dict[str, ChatReply] = {}

    def key(self, request: ChatRequest) -> str:
        """Return what a request is remembered under."""
        return digest({"judge": self._identity, "request": asdict(request)})

    def recall(self, keys: Iterable[str]) -> dict[str, ChatReply]:
        """Return the replies of those of `keys` that are known."""
        keys = list(keys)
        unknown = [key for key in keys if key not in self._known]
        if self._memory is not None and unknown:
            found = self._memory.recall(unknown)
            self._known |= {key: _REPLY.validate_json(text) for key, text in found.items()}
        return {key: self._known[key] for key in keys if key in self._known}

    def ask(self, requests: Mapping[str, ChatRequest], generate: Generate) -> list[ChatReply]:
        """Return a reply for each request, in order, and remember it at once; failed calls are asked again later.

        What another process asks at this moment is not asked twice.
        """

        def compute(keys: list[str]) -> dict[str, ChatReply]:
            return dict(zip(keys, generate([requests[key] for key in keys]), strict=True))

        replies = Work(_ROOM, compute, _encode, _REPLY.validate_json, len(requests)).do(self._memory, requests)
        self._known |= {key: reply for key, reply in replies.items() if not reply.error}
        return [replies[key] for key in requests]

    @cached_property
    def _identity(self) -> str:
        return digest(dict(self._judge.identity()))


def _encode(reply: ChatReply) -> str | None:
    return None if reply.error else _REPLY.dump_json(reply).decode()
