"""Waits until a kernel is ready by what it says, and no longer.

jupyter_client's own client waits for another fifth of a second in which nothing comes, each time that a kernel starts.
"""

from __future__ import annotations

import math
import time
from queue import Empty
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient

_REPLY_S = 1.0
_STATUS_S = 0.2


class ReadyClient(AsyncKernelClient):
    """A kernel is ready when it has answered, and its other channel has said that it is idle again."""

    async def _async_wait_for_ready(self, timeout: float | None = None) -> None:
        ends_s = time.monotonic() + (math.inf if timeout is None else timeout)
        while not await self._answers():
            if not await self._async_is_alive():
                raise RuntimeError("Kernel died before replying to kernel_info")
            if time.monotonic() > ends_s:
                raise RuntimeError(f"Kernel didn't respond in {timeout:g} seconds")

    wait_for_ready = _async_wait_for_ready  # as its base has it

    async def _answers(self) -> bool:
        asked = self.kernel_info()
        reply = await self._next(self.shell_channel, _REPLY_S)
        if reply is None or reply["msg_type"] != "kernel_info_reply":
            return False
        while (told := await self._next(self.iopub_channel, _STATUS_S)) is not None:
            if told["parent_header"].get("msg_id") == asked and told["content"].get("execution_state") == "idle":
                self._handle_kernel_info_reply(reply)
                return True
        return False

    async def _next(self, channel: Any, seconds: float) -> dict[str, Any] | None:
        try:
            return dict(await channel.get_msg(timeout=seconds))
        except Empty:
            return None
