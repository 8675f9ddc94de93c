"""What an exception of a remote model means: try again, give up on this request, or give up on the model."""

import json
import re
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
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    codes = (getattr(each, name, None) for each in chain for name in ("status_code", "code"))
    status = next((code for code in codes if isinstance(code, int) and 100 <= code <= 599), None)
    text = one_line(_message(chain) or str(error))
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


def _message(chain: list[BaseException]) -> str:
    """Return the server's own words, without the JSON around them."""
    for link in chain:
        for body in (getattr(link, "body", None), getattr(link, "details", None)):
            if isinstance(body, dict):
                inner = body.get("error", body)
                if isinstance(inner, dict) and isinstance(inner.get("message"), str):
                    return str(inner["message"])
    return ""


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
