"""The way to a judge: its remembered replies, by request, and the queue of concurrent scores.

Metrics and variants that ask the same thing share one reply: its key holds the judge's identity and the whole request.
The seed differs by repeat and by resample, so neither is ever answered from another's reply. A judge that takes calls
one by one, as many at a time as its `concurrency` says, gets each request as soon as it has a place free; another one
gets those that concurrent scores are waiting for in one batch, from one thread.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

from pydantic import TypeAdapter

from rag_lab._kit.digest import digest
from rag_lab._kit.registry import unwatched
from rag_lab.errors import RagLabError
from rag_lab.memory.results import Memory, Work
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Concurrent

Generate = Callable[[Sequence[ChatRequest]], list[ChatReply]]

SEEDS_PER_REPEAT = 1000  # a request of repeat n has a seed from n times this on

_REPLY: TypeAdapter[ChatReply] = TypeAdapter(ChatReply)
Result = TypeVar("Result")


@dataclass(eq=False)
class JudgeReplies:
    """Replies of one judge, for as long as this object lives, and in a memory where there is one."""

    judge: ChatModel
    memory: Memory | None = None
    _known: dict[str, ChatReply] = field(default_factory=dict, init=False, repr=False)

    def key(self, request: ChatRequest) -> str:
        """Return what a request is remembered under."""
        return digest({"judge": self._identity, "request": asdict(request)})

    def recall(self, keys: Iterable[str]) -> dict[str, ChatReply]:
        """Return the replies of those of `keys` that are known."""
        keys = list(keys)
        unknown = [key for key in keys if key not in self._known]
        if self.memory is not None and unknown:
            found = self.memory.recall(unknown)
            self._known |= {key: _REPLY.validate_json(text) for key, text in found.items()}
        return {key: self._known[key] for key in keys if key in self._known}

    def ask(self, requests: Mapping[str, ChatRequest], generate: Generate) -> list[ChatReply]:
        """Return a reply for each request, in order, and remember it at once; failed calls are asked again later."""
        work = Work(
            "judge",
            lambda keys: dict(zip(keys, generate([requests[key] for key in keys]), strict=True)),
            lambda reply: None if reply.error else _REPLY.dump_json(reply).decode(),
            _REPLY.validate_json,
            len(requests),
        )
        replies = work.do(self.memory, requests)
        self._known |= {key: reply for key, reply in replies.items() if not reply.error}
        return [replies[key] for key in requests]

    @cached_property
    def _identity(self) -> str:
        return digest(dict(self.judge.identity()))


class RememberedJudge:
    """A judge for one score of a custom metric. The same request is one call, also where it was remembered.

    `is_troubled` tells whether a request had no reply, which another attempt may cure.
    """

    def __init__(self, judge: ChatModel, replies: JudgeReplies, repeat: int) -> None:
        self._judge, self._replies, self._first_seed = judge, replies, SEEDS_PER_REPEAT * repeat
        self.replies: dict[str, ChatReply] = {}  # by request
        self.is_troubled = False
        self.constrains_json, self.context_tokens = judge.constrains_json, judge.context_tokens

    def identity(self) -> Mapping[str, Any]:
        """Return the judge's."""
        return self._judge.identity()

    def count_tokens(self, text: str) -> int:
        """Count as the judge does."""
        with unwatched():
            return self._judge.count_tokens(text)

    def generate(self, requests: Sequence[ChatRequest]) -> list[ChatReply]:
        """Return one reply for each request, in order."""
        seeded = [replace(request, seed=request.seed + self._first_seed) for request in requests]
        self.is_troubled = True  # until it has replied
        with unwatched():  # the weights may be loaded now, and what is remembered is ours
            keys = [self._replies.key(request) for request in seeded]
            wanted = dict(zip(keys, seeded, strict=True))
            known = self._replies.recall(wanted)
            new = {key: request for key, request in wanted.items() if key not in known}
            if new:
                known |= dict(zip(new, self._replies.ask(new, self._judge.generate), strict=True))
        self.replies |= known
        self.is_troubled = any(reply.error for reply in known.values())
        return [known[key] for key in keys]


class JudgeQueue:
    """Takes requests from coroutines of one event loop at a time, and gives each its reply."""

    def __init__(self, judge: ChatModel, replies: JudgeReplies | None = None) -> None:
        self.judge = judge
        self._batched = not isinstance(judge, Concurrent)
        self.n_at_once = judge.concurrency if isinstance(judge, Concurrent) else 1
        self._replies = replies or JudgeReplies(judge)
        self._threads = ThreadPoolExecutor(self.n_at_once, "judge") if self.n_at_once > 1 else None
        self._waiting: dict[str, ChatRequest] = {}
        self._open: dict[str, asyncio.Future[ChatReply]] = {}
        self._broken: RagLabError | None = None

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Return the judge's reply; once the judge cannot be used at all, it is not called again."""
        loop = asyncio.get_running_loop()
        key = self._replies.key(request)
        future = self._open.get(key)
        if future is None or future.get_loop() is not loop:  # of a loop that was interrupted
            future = self._open[key] = loop.create_future()
            if not self._waiting:
                loop.call_soon(self._send)  # runs after all scores that are ready now have asked, too
            self._waiting[key] = request
        return await future

    def room_for_reply(self, prompt: str, wanted: int) -> int:
        """Return how many of `wanted` tokens the judge could write after `prompt`; 0 or less: it is too long."""
        if len(prompt.encode()) + wanted <= self.judge.context_tokens:  # no token is shorter than a byte
            return wanted
        return min(wanted, self.judge.context_tokens - self._unless_broken(lambda: self.judge.count_tokens(prompt)))

    def stop(self) -> None:
        """Make no further call: whoever waits or asks from now on gets an error."""
        self._broken = RagLabError("The evaluation was interrupted; run it again to go on.")
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _send(self) -> None:
        asked, self._waiting = self._waiting, {}
        known = self._replies.recall(asked)
        for key, reply in known.items():
            self._open.pop(key).set_result(reply)
        new = {key: request for key, request in asked.items() if key not in known}
        if self._threads is None:
            for keys in [list(new)] if self._batched else [[key] for key in new]:
                self._settle(keys, partial(self._generate, {key: new[key] for key in keys}))
            return
        for key, request in new.items():
            run = partial(copy_context().run, self._generate, {key: request})
            try:
                done = asyncio.get_running_loop().run_in_executor(self._threads, run)
            except RuntimeError:  # stopped
                self._settle([key], self._raise_broken)
            else:
                done.add_done_callback(
                    lambda done, key=key: self._settle([key], self._raise_broken if done.cancelled() else done.result)  # type: ignore[misc]
                )

    def _settle(self, keys: Sequence[str], replies: Callable[[], list[ChatReply]]) -> None:
        """Give each waiting score its reply; whatever a model raises belongs to the scores that wait for it."""
        if not keys:
            return
        try:
            found = replies()
        except Exception as error:
            for key in keys:
                self._open.pop(key).set_exception(error)
        else:
            for key, reply in zip(keys, found, strict=True):
                self._open.pop(key).set_result(reply)

    def _generate(self, requests: dict[str, ChatRequest]) -> list[ChatReply]:
        """Call the judge; what it says is kept at once, so that an interruption loses no reply."""
        return self._replies.ask(requests, lambda some: self._unless_broken(lambda: self.judge.generate(some)))

    def _raise_broken(self) -> list[ChatReply]:
        raise self._broken or RagLabError("The judge was not asked.")

    def _unless_broken(self, call: Callable[[], Result]) -> Result:
        if self._broken is not None:
            raise self._broken
        try:
            return call()
        except RagLabError as error:
            self._broken = error
            raise
