"""The HTTP clients of remote models: what is read of a reply is bounded, and a server is asked with plain JSON.

A reply is read whole or not at all: at most so many bytes, never compressed (a small body must not unpack to a large
one), within the model's time-out from the request to the last byte, and of the protocol's shape where it succeeded.
"""

import importlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rag_lab._kit.machine import timed
from rag_lab.models import options, requirements
from rag_lab.models.remote import failures

_BEGAN = "rag_lab_began"
MIB = 1 << 20
CHAT_BYTES = 4 * MIB  # a reply of a hundred thousand tokens, with its thinking
_MAX_REPLY_BYTES = 16 * MIB
_WORDS = ("message", "error", "detail")  # where servers say what is wrong


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
        """Read a reply whole. Where it is out of bounds, a status that tells of a failure says enough without it."""
        try:
            content = self._content(response)
        except failures.BadReply:
            if response.is_success:
                raise
            content = b""
        finally:
            response.stream.close()
        if response.is_success:
            self.check(content)
        library = importlib.import_module(type(response).__module__.partition(".")[0])
        response.stream = library.ByteStream(content)

    def _content(self, response: Any) -> bytes:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            response.headers.pop("Content-Encoding")
            raise failures.BadReply("the server compressed its reply, which it was asked not to")
        too_long = f"the server's reply is longer than {self.max_bytes // MIB} MiB"
        if int(response.headers.get("Content-Length", 0)) > self.max_bytes:
            raise failures.BadReply(too_long)
        chunks, n_bytes, end = [], 0, response.request.extensions[_BEGAN] + self.timeout_s
        for chunk in response.stream:
            n_bytes += len(chunk)
            if n_bytes > self.max_bytes:
                raise failures.BadReply(too_long)
            if time.monotonic() > end:
                raise TimeoutError(f"the reply was not whole within {self.timeout_s:g} seconds")
            chunks.append(chunk)
        return b"".join(chunks)


class StatusError(Exception):
    """A reply whose status tells of a failure; `response` has its headers."""

    def __init__(self, response: Any) -> None:
        self.status_code = response.status_code
        self.response = response
        try:
            found = json.loads(response.content)
        except ValueError:
            found = ""
        while isinstance(found, dict):
            found = next((found[word] for word in _WORDS if found.get(word)), "")
        text = found if isinstance(found, str) else json.dumps(found)
        super().__init__(text or f"status {response.status_code}")


@dataclass(frozen=True)
class Endpoint:
    """The server at `address`; `headers`, which may hold a key, go with each request."""

    address: str
    timeout_s: float
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        options.check_url(self.address, "The option base_url")

    def post(self, path: str, body: Mapping[str, Any], check: Callable[[bytes], None]) -> Any:
        """Return the JSON that the server answers; `check` gets its body first. See `failures` for what it raises."""
        return self._read(self._client(check).post(self.address.rstrip("/") + path, json=dict(body)))

    def get(self, path: str, check: Callable[[bytes], None]) -> Any:
        """Return the JSON of a page; see `post`."""
        return self._read(self._client(check).get(self.address.rstrip("/") + path))

    def problem(self, path: str, *, must_exist: bool = False) -> str:
        """Return why the server cannot be asked, in one sentence, or ''.

        Any answer will do but one that rejects the key or tells of a failure; where `path` must exist, that it does not
        is a problem, too.
        """
        self._client(_anything)  # its library is imported before the time runs
        try:
            timed(lambda: self.get(path, _anything), self.timeout_s)
        except Exception as error:
            status = error.status_code if isinstance(error, StatusError) else 500
            if status < 500 and status not in ((401, 403, 404) if must_exist else (401, 403)):
                return ""
            return f"{self.address}: {failures.classify(error).sentence.rstrip('.')}."
        return ""

    def _read(self, response: Any) -> Any:
        if not response.is_success:
            raise StatusError(response)
        return response.json() if response.content else None

    def _client(self, check: Callable[[bytes], None]) -> Any:
        if check not in self._clients:
            library = requirements.require_package("httpx", "httpx")
            hooks = HttpBounds(self.timeout_s, _MAX_REPLY_BYTES, check).hooks()
            self._clients[check] = library.Client(headers=dict(self.headers), event_hooks=hooks)
        return self._clients[check]

    @cached_property
    def _clients(self) -> dict[Callable[[bytes], None], Any]:
        return {}


def bearer(key: str) -> dict[str, str]:
    """Return the header of a key, none where there is none."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def _anything(content: bytes) -> None:
    """Take any body: that something answers is all that was asked."""
