"""Typed options of a model name: `?context=8192&device=cpu`. A secret is never an option."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from rag_lab.errors import ModelError, unknown_name
from rag_lab.redaction import names_secret

Value = str | int | float | bool
_SHOWN_CHARS = 40
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its type, its smallest and its largest value, its allowed values, and the argument it sets."""

    kind: type[str] | type[int] | type[float] | type[bool]
    minimum: int = 1
    maximum: int = 10_000_000
    choices: tuple[str, ...] = ()
    argument: str = ""  # the constructor's argument, where it cannot have the option's name


def parse_options(text: str, allowed: Mapping[str, Option]) -> dict[str, Value]:
    """Return the options written in `text` (`key=value&key=value`), typed, in the order given."""
    values: dict[str, Value] = {}
    for part in filter(None, text.split("&")):
        key, equals, raw = part.partition("=")
        if key not in allowed:
            if not equals:
                raise ModelError("An option of a model is written name=value, and one of them is not.")
            if names_secret(key):
                raise ModelError(
                    f"A model name must not hold secrets ({key!r}); set the provider's environment variable instead."
                )
            unknown = unknown_name("option of this model", key, allowed) if allowed else ""
            raise ModelError(unknown or f"This model has no option {key!r}.")
        if key in values:
            raise ModelError(f"The option {key!r} of a model is given twice; give it once.")
        values[key] = _typed(key, unquote(raw), allowed[key])
    return values


def _typed(key: str, raw: str, option: Option) -> Value:
    if option.kind is bool:
        if raw.lower() not in _TRUTH:
            raise ModelError(f"The option {key} must be true or false, got {raw!r}.")
        return _TRUTH[raw.lower()]
    if option.kind is str:
        if option.choices and raw not in option.choices:
            raise ModelError(unknown_name(f"value of the option {key}", raw, option.choices))
        if not raw:
            raise ModelError(f"The option {key} is empty; give it a value or leave it out.")
        if key == "base_url":
            check_url(raw, "The option base_url")
        return raw
    is_whole = option.kind is int
    try:
        number = int(raw) if is_whole else float(raw)
    except ValueError:
        number = -1
    if not option.minimum <= number <= option.maximum or number <= 0:
        noun = "whole number" if is_whole else "number"
        bound = f"of at least {option.minimum}" if option.minimum else "above 0"
        shown = raw if len(raw) <= _SHOWN_CHARS else f"{raw[:_SHOWN_CHARS]}…"
        raise ModelError(f"The option {key} must be a {noun} {bound} and at most {option.maximum:,}, got {shown!r}.")
    return number


def on_loopback(url: str) -> bool:
    """Tell whether an address is of this machine, where a server needs no key."""
    return urlsplit(url).hostname in _LOOPBACK


def check_url(url: str, what: str) -> None:
    """Refuse an address that is not http(s) or that carries a secret, without repeating it."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ModelError(f"{what} must be an address such as http://127.0.0.1:8000/v1.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ModelError(
            f"{what} must not hold a user, a password or a query; set the provider's environment variable."
        )
