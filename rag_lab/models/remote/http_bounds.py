"""Bounds on what is read of a remote model's reply, for the HTTP clients that providers' libraries are given.

A reply is read whole or not at all: at most so many bytes, never compressed (a small body must not unpack to a large
one), within the model's time-out from the request to the last byte, and of the protocol's shape where it succeeded.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rag_lab.models.remote.failures import BadReply

_BEGAN = "rag_lab_began"
MIB = 1 << 20
CHAT_BYTES = 4 * MIB  # a reply of a hundred thousand tokens, with its thinking


@dataclass(frozen=True, slots=True)
class HttpBounds:
    """`check` gets the body of a successful reply and raises `BadReply` where it is not what was asked for."""

    timeout_s: float
    max_bytes: int
    check: Callable[[bytes], None]

    def hooks(self) -> dict[str, list[Callable[[Any], None]]]:
        """Return the event hooks of an httpx (or httpx2) client; both libraries name everything alike."""
        return {"request": [self._prepare], "response": [self._read]}

    def _prepare(self, request: Any) -> None:
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), self.timeout_s)
        request.extensions = {**request.extensions, "timeout": timeouts, _BEGAN: time.monotonic()}
        request.headers["Accept-Encoding"] = "identity"

    def _read(self, response: Any) -> None:
        content = self._content(response)
        if response.is_success:
            self.check(content)
        library = importlib.import_module(type(response).__module__.partition(".")[0])
        response.stream = library.ByteStream(content)

    def _content(self, response: Any) -> bytes:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            response.headers.pop("Content-Encoding")
            return self._refused(response, "the server compressed its reply, which it was asked not to")
        too_long = f"the server's reply is longer than {self.max_bytes // MIB} MiB"
        if int(response.headers.get("Content-Length", 0)) > self.max_bytes:
            return self._refused(response, too_long)
        chunks, n_bytes, end = [], 0, response.request.extensions[_BEGAN] + self.timeout_s
        for chunk in response.stream:
            n_bytes += len(chunk)
            if n_bytes > self.max_bytes:
                return self._refused(response, too_long)
            if time.monotonic() > end:
                raise TimeoutError(f"the reply was not whole within {self.timeout_s:g} seconds")
            chunks.append(chunk)
        response.stream.close()
        return b"".join(chunks)

    def _refused(self, response: Any, reason: str) -> bytes:
        """Read no further. A status that tells of a failure says enough without its body."""
        response.stream.close()
        if response.is_success:
            raise BadReply(reason)
        return b""
