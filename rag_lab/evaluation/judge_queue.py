"""One batch for many questions: the calls that concurrent scores are waiting for go to the judge together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from rag_lab.errors import RagLabError
from rag_lab.models.base import ChatModel, ChatReply, ChatRequest

Result = TypeVar("Result")


class JudgeQueue:
    """Collects requests from coroutines of one event loop and sends them in one `generate`.

    The call blocks the loop: by then every score is waiting for a reply, and a local model is called from one thread.
    """

    def __init__(self, judge: ChatModel) -> None:
        self.judge = judge
        self._waiting: list[tuple[ChatRequest, asyncio.Future[ChatReply]]] = []
        self._broken: RagLabError | None = None

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Return the judge's reply.

        Raises:
            RagLabError: if the judge cannot be used at all; from then on it is not called again.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ChatReply] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._send)  # runs after all scores that are ready now have asked, too
        self._waiting.append((request, future))
        return await future

    def room_for_reply(self, prompt: str) -> int:
        """Return how many tokens the judge could write after reading `prompt`; negative where it is too long.

        Raises:
            RagLabError: as `ask`.
        """
        return self.judge.context_tokens - self._unless_broken(lambda: self.judge.count_tokens(prompt))

    def _send(self) -> None:
        batch, self._waiting = self._waiting, []
        try:
            replies = self._unless_broken(lambda: self.judge.generate([request for request, _ in batch]))
            answered = list(zip(batch, replies, strict=True))
        except Exception as error:  # whatever a model raises belongs to the scores that wait for it
            for _, future in batch:
                future.set_exception(error)
        else:
            for (_, future), reply in answered:
                future.set_result(reply)

    def _unless_broken(self, call: Callable[[], Result]) -> Result:
        if self._broken is not None:
            raise self._broken
        try:
            return call()
        except RagLabError as error:
            self._broken = error
            raise
