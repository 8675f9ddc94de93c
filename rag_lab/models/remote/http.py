"""The HTTP clients of remote models, and what their failures mean: try again, give up on a request, or on the model.

A reply is read whole or not at all: at most so many bytes, never compressed (a small body must not unpack to a large
one), within the model's time-out from the request to the last byte, and of the protocol's shape where it succeeded.
"""

import importlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

from rag_lab._kit.machine import timed
from rag_lab.models import requirements
from rag_lab.models.protocols import LISTENER
from rag_lab.redaction import one_line

_ABOUT_THE_REQUEST = {400, 413, 414, 422, 431}  # the same request gets the same answer tomorrow
_REJECTED_KEY = ("API_KEY_INVALID", "API key not valid")  # Gemini says so with status 400
_TIME_OUTS = {408, 504, 524}  # of a gateway that has waited for the model in vain
_QUOTAS = ("ratelimit-{}", "x-ratelimit-{}", "x-ratelimit-{}-requests", "x-ratelimit-{}-tokens")
_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|)")
_UNITS_S = {"h": 3600, "m": 60, "s": 1, "ms": 0.001, "": 1}
_LONGEST_S = 1e6
_CONNECTION_WORDS = ("timeout", "connect", "transport", "protocol", "readerror", "writeerror")


class BadReply(Exception):  # noqa: N818
    """A successful HTTP reply that is not what a model's server would send, or not within bounds; in a user's words."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call. `wait_s` is what the server asked for, None where it did not say."""

    sentence: str
    transient: bool
    fatal: bool = False  # no request to this model can succeed
    wait_s: float | None = None
    time_out: bool = False
    too_many: bool = False  # requests: the server refused this one for the number of them


def classify(error: Exception) -> Failure:
    """Return what `error`, raised by LangChain or a provider's client, means.

    Only what the server says of this very request lasts; whatever else goes wrong is transient, so nobody remembers it.
    """
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    codes = (getattr(each, name, None) for each in chain for name in ("status_code", "code"))
    status = next((code for code in codes if isinstance(code, int) and 100 <= code <= 599), None)
    bodies = (getattr(each, name, None) for each in chain for name in ("body", "details"))
    inner = (body.get("error", body) for body in bodies if isinstance(body, dict))  # the server's own words
    words = (each["message"] for each in inner if isinstance(each, dict) and isinstance(each.get("message"), str))
    text = one_line(next(words, "") or str(error))
    if status in (401, 403) or (status == 400 and any(word in str(error) for word in _REJECTED_KEY)):
        return Failure(f"the key was rejected ({status}): {text}", transient=False, fatal=True)
    if status == 404:
        return Failure(f"the server does not know the model (404): {text}", transient=False, fatal=True)
    if status is not None and status >= 300:
        transient = status not in _ABOUT_THE_REQUEST
        late = status in _TIME_OUTS
        sentence = f"the server answered with status {status}: {text}"
        return Failure(sentence, transient, False, _wait_s(chain), late, status == 429)
    names = {base.__name__.lower() for each in chain for base in type(each).__mro__}
    if (bad := next((each for each in chain if isinstance(each, BadReply)), None)) is not None:
        sentence = str(bad)
    elif any(isinstance(each, json.JSONDecodeError) for each in chain):
        sentence = "the server's reply is not JSON"
    elif any(word in name for name in names for word in _CONNECTION_WORDS):
        sentence = f"the server did not answer ({type(error).__name__}): {text}"
    else:
        sentence = f"the call failed ({type(error).__name__}): {text}"
    return Failure(sentence, transient=True, time_out=any("timeout" in name for name in names))


def _wait_s(chain: list[BaseException]) -> float | None:
    """Return how long a server asks to wait: `Retry-After`, when a spent quota is refilled, or Google's `RetryInfo`.

    Quotas stand in headers (`X-RateLimit-Reset-Requests: 1m2.5s`, say), `{"retryDelay": "7s"}` anywhere in the details.
    """
    for link in chain:
        headers = getattr(getattr(link, "response", None), "headers", None) or {}
        spent = [kind for kind in _QUOTAS if str(headers.get(kind.format("remaining"), "")).strip() == "0"]
        refilled = [_duration(headers.get(kind.format("reset"), "")) for kind in spent]
        delay = re.search(r"[\"']retryDelay[\"']:\s*[\"'](\d+(?:\.\d+)?)s[\"']", str(getattr(link, "details", None)))
        asked = (
            _seconds(headers.get("retry-after")),
            max((wait_s for wait_s in refilled if wait_s is not None), default=None),
            float(delay[1]) if delay else None,
        )
        if waits := [found for found in asked if found is not None]:
            return waits[0]
    return None


def _duration(text: str) -> float | None:
    """Read seconds, as `12`, `6m0s` or `120ms`; None for anything else, as a moment in seconds since 1970."""
    parts = _PART.findall(text)
    if "".join(number + unit for number, unit in parts) != text.strip() or not parts:
        return None
    wait_s = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
    return wait_s if wait_s < _LONGEST_S else None


def _seconds(header: Any) -> float | None:
    """Read `Retry-After`: seconds or an HTTP date."""
    try:
        return max(0.0, float(header))
    except (TypeError, ValueError):
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError, AttributeError):
        return None


_BEGAN = "rag_lab_began"
MIB = 1 << 20
CHAT_BYTES = 4 * MIB  # a reply of a hundred thousand tokens, with its thinking
_MAX_REPLY_BYTES = 16 * MIB
_WORDS = ("message", "error", "detail")  # where servers say what is wrong


def event_hooks(
    timeout_s: float, max_bytes: int, check: Callable[[bytes], None] | None
) -> dict[str, list[Callable[[Any], None]]]:
    """Return the event hooks of an httpx (or httpx2) client; `check` raises `BadReply` for the body of a bad reply."""

    def prepare(request: Any) -> None:
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), timeout_s)
        request.extensions = {**request.extensions, "timeout": timeouts, _BEGAN: time.monotonic()}
        request.headers["Accept-Encoding"] = "identity"

    def chunks_of(response: Any, stream: Any) -> Iterator[bytes]:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            response.headers.pop("Content-Encoding")
            raise BadReply("the server compressed its reply, which it was asked not to")
        too_long = f"the server's reply is longer than {max_bytes // MIB} MiB"
        if int(response.headers.get("Content-Length", 0)) > max_bytes:
            raise BadReply(too_long)
        n_bytes, end = 0, response.request.extensions[_BEGAN] + timeout_s
        for chunk in stream:
            n_bytes += len(chunk)
            if n_bytes > max_bytes:
                raise BadReply(too_long)
            if time.monotonic() > end:
                raise TimeoutError(f"the reply was not whole within {timeout_s:g} seconds")
            yield chunk

    def read(response: Any) -> None:
        """Read a reply whole, but a stream with a listener by piece; of a failure, the status is enough."""
        library = importlib.import_module(type(response).__module__.partition(".")[0])
        kind = response.headers.get("Content-Type", "")
        is_stream = kind.partition(";")[0].endswith(("event-stream", "ndjson")) and LISTENER.get() is not None
        if response.is_success and is_stream:
            found, close = chunks_of(response, response.stream), response.stream.close
            methods = {"__iter__": lambda self: found, "close": lambda self: close()}
            response.stream = type("Bounded", (library.SyncByteStream,), methods)()
            return
        try:
            content = b"".join(chunks_of(response, response.stream))
        except BadReply:
            if response.is_success:
                raise
            content = b""
        finally:
            response.stream.close()
        if response.is_success and check:
            check(content)
        response.stream = library.ByteStream(content)

    return {"request": [prepare], "response": [read]}


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

    def ask(
        self, path: str, check: Callable[[bytes], None] | None = None, body: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the JSON of a page, or of the answer to `body`; `check` gets it first. See `classify` for failures."""
        address = self.address.rstrip("/") + path
        response = self._client.get(address) if body is None else self._client.post(address, json=dict(body))
        if not response.is_success:
            raise StatusError(response)
        if check:
            check(response.content)
        return response.json() if response.content else None

    def problem(self, path: str, *, must_exist: bool = False) -> str:
        """Return why the server cannot be asked, in one sentence, or ''; any answer will do but a failure or rejected
        key.
        """
        _ = self._client  # its library is imported before the time runs
        try:
            timed(lambda: self.ask(path), self.timeout_s)
        except Exception as error:
            status = error.status_code if isinstance(error, StatusError) else 500
            if status < 500 and status not in ((401, 403, 404) if must_exist else (401, 403)):
                return ""
            return f"{self.address}: {classify(error).sentence.rstrip('.')}."
        return ""

    @cached_property
    def _client(self) -> Any:
        requirements.check_url(self.address, "The option base_url")
        library = requirements.require_package("httpx", "httpx")
        hooks = event_hooks(self.timeout_s, _MAX_REPLY_BYTES, None)
        return library.Client(headers=dict(self.headers), event_hooks=hooks)


def bearer(key: str) -> dict[str, str]:
    """Return the header of a key, none where there is none."""
    return {"Authorization": f"Bearer {key}"} if key else {}
