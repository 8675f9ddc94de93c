"""The way from concurrent scores to the judge: no request is made twice, and the judge is kept as busy as it allows.

A judge that takes calls one by one, as many at a time as its `concurrency` says, gets each request as soon as it has a
place free. Another one gets those that concurrent scores are waiting for in one batch, from one thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from rag_lab.errors import RagLabError
from rag_lab.evaluation.judge.replies import JudgeReplies
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Concurrent

Result = TypeVar("Result")


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
        """Return the judge's reply.

        Raises:
            RagLabError: if the judge cannot be used at all; from then on it is not called again.
        """
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
        """Return how many of `wanted` tokens the judge could write after reading `prompt`; 0 or less: it is too long.

        Raises:
            RagLabError: as `ask`.
        """
        if len(prompt.encode()) + wanted <= self.judge.context_tokens:  # no token is shorter than a byte
            return wanted
        return min(wanted, self.judge.context_tokens - self._unless_broken(lambda: self.judge.count_tokens(prompt)))

    def stop(self) -> None:
        """Make no further call: whoever waits or asks from now on is told that the evaluation was interrupted."""
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
            self._start(self._threads, key, request)

    def _start(self, threads: ThreadPoolExecutor, key: str, request: ChatRequest) -> None:
        loop = asyncio.get_running_loop()
        try:
            done = loop.run_in_executor(threads, copy_context().run, self._generate, {key: request})
        except RuntimeError:  # stopped
            self._settle([key], self._raise_broken)
        else:
            done.add_done_callback(partial(self._settle_one, key))

    def _settle_one(self, key: str, done: asyncio.Future[list[ChatReply]]) -> None:
        self._settle([key], self._raise_broken if done.cancelled() else done.result)

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
