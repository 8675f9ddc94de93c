"""What an exception of a remote model means: try again, give up on this request, or give up on the model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

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

    Only what the server says of this very request lasts. Whatever else goes wrong, an unknown exception of a library
    included, may be the work of a gateway, a proxy or a day: it is transient, so that nobody remembers it.
    """
    chain = list(_chain(error))
    status = next((found for link in chain if (found := _status(link)) is not None), None)
    text = one_line(_message(chain) or str(error))
    if status in (401, 403) or (status == 400 and any(word in str(error) for word in _REJECTED_KEY)):
        return Failure(f"the key was rejected ({status}): {text}", transient=False, fatal=True)
    if status == 404:
        return Failure(f"the server does not know the model (404): {text}", transient=False, fatal=True)
    if status is not None and status >= 300:
        transient = status not in _ABOUT_THE_REQUEST
        late = status in _TIME_OUTS
        return Failure(
            f"the server answered with status {status}: {text}", transient, False, _wait(chain), late, status == 429
        )
    late = any("timeout" in word for word in _names(chain))
    return Failure(_sentence(error, chain, text), transient=True, time_out=late)


def _sentence(error: Exception, chain: list[BaseException], text: str) -> str:
    bad = next((link for link in chain if isinstance(link, BadReply)), None)
    if bad is not None:
        return str(bad)
    if any(isinstance(link, json.JSONDecodeError) for link in chain):
        return "the server's reply is not JSON"
    if any(word in name for name in _names(chain) for word in _CONNECTION_WORDS):
        return f"the server did not answer ({type(error).__name__}): {text}"
    return f"the call failed ({type(error).__name__}): {text}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _message(chain: list[BaseException]) -> str:
    """Return the server's own words, without the JSON around them."""
    for link in chain:
        for body in (getattr(link, "body", None), getattr(link, "details", None)):
            if isinstance(body, dict):
                inner = body.get("error", body)
                if isinstance(inner, dict) and isinstance(inner.get("message"), str):
                    return str(inner["message"])
    return ""


def _status(error: BaseException) -> int | None:
    for value in (getattr(error, "status_code", None), getattr(error, "code", None)):
        if isinstance(value, int) and 100 <= value <= 599:
            return value
    return None


def _names(chain: list[BaseException]) -> set[str]:
    return {base.__name__.lower() for link in chain for base in type(link).__mro__}


def _wait(chain: list[BaseException]) -> float | None:
    for link in chain:
        headers = getattr(getattr(link, "response", None), "headers", None) or {}
        asked = (_seconds(headers.get("retry-after")), _reset(headers), _retry_delay(getattr(link, "details", None)))
        if wait_s := [found for found in asked if found is not None]:
            return wait_s[0]
    return None


def _reset(headers: Mapping[str, str]) -> float | None:
    """Read when a spent quota is refilled, of those that headers tell: `X-RateLimit-Reset-Requests: 1m2.5s`, say."""
    spent = [kind for kind in _QUOTAS if str(headers.get(kind.format("remaining"), "")).strip() == "0"]
    waits = [_duration(headers.get(kind.format("reset"), "")) for kind in spent]
    return max((wait_s for wait_s in waits if wait_s is not None), default=None)


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


def _retry_delay(details: Any) -> float | None:
    """Read Google's `RetryInfo`, e.g. `{"retryDelay": "7s"}`, wherever it stands in the details."""
    found = re.search(r"[\"']retryDelay[\"']:\s*[\"'](\d+(?:\.\d+)?)s[\"']", str(details))
    return float(found[1]) if found else None
