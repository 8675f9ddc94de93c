r"""Secrets are taken out of whatever is shown or written, and control characters are escaped.

Known are the values of environment variables that are named like keys, and the passwords of addresses that stand in
the environment. They are found as they are and as JSON, HTML, addresses and base64 write them, also where a reply is
cut off behind a key's first characters. Not found: a key in pieces with other text between them, in hexadecimal or
enciphered, what is shorter than eight characters, and a password that is a word (`postgres`): to hide that wherever it
stands would change documents, names of files and scores.

A control character from outside could steer the terminal or the page that shows it: an escape sequence can write to
the clipboard or hide what was printed; U+202E turns the reading direction around. Each is shown as Python writes it:
`\x1b`, `\u202e`. New lines and tabs stay.
"""

import base64
import html
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

HIDDEN = "[hidden]"
SHORTEST_CHARS = 8
_LONGEST_WORD_CHARS = 20
_READ_CHARS = 10_000  # of what a server said; patterns of sentences may take the square of it
_PIECE_CHARS = 12  # of a longer secret; so much of it is no coincidence
_NAMED = re.compile(r"(?i)(?:(?:^|_)(?:api_?key|key|token|secret)|passw(?:or)?d|passphrase)(?:_?\d+)?$")
_WORDS = r"key|token(?!s)|secret|passw|auth|credential"
_LOOKS_SECRET = (  # signs, one of which must stand in the text, and what is hidden: signs are found far more quickly
    (("sk-", "pk-", "rk-"), re.compile(r"()\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}")),
    (("AIza",), re.compile(r"()\bAIza[A-Za-z0-9_-]{30,}")),
    (("hf_",), re.compile(r"()\bhf_[A-Za-z0-9]{20,}")),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), re.compile(r"()\bgh[pousr]_[A-Za-z0-9]{30,}")),
    (("?key=", "&key="), re.compile(r"([?&]key=)[^&\s\"'<]{8,}")),
    (("earer ",), re.compile(r"([Bb]earer )[A-Za-z0-9._~+/=-]{16,}")),
    (("://",), re.compile(r"(://)[^\s/@\"'<>]+(?=@)")),
)
_SAID_SECRET = (
    re.compile(r"(?i)\b((?:bearer|basic)\s+)(?=\S*[\d=+/_-])[^\s\"',;\[]+"),
    re.compile(r"(?i)\b((?:api[_-]?key|access[_-]?token|secret|passw(?:or)?d)[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,;}\[]+"),
    re.compile(rf"(?i)([?&](?=[^\s=?&]*(?:{_WORDS}))[^\s=?&]*=)[^\s\"'&,;}}\[]+"),
    re.compile(r"()\b(?:sk-|AIza)[\w*-]{6,}"),
    re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)\S*(?=@)"),
)
_GIVEN_SECRET = (  # in a value whose end is known, so that blanks do not end a secret
    re.compile(r"(?s)(://).*(?=@)"),
    re.compile(rf"(?is)([?&](?=[^=?&]*(?:{_WORDS}))[^=?&]*=)[^&]+"),
)
_NAMELESS = re.compile(r"([?&])[^=&\s]+(?=&|$)")  # a value that may be one without its name
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"  # C0, C1, bidi, surrogates
)
# Classes of HTML in which JupyterLab and nbconvert take no dollars for a formula: "$ 1 and $ 2".
NO_FORMULAS = "mathjax_ignore tex2jax_ignore"
_ENDLESS = re.compile(r"\S{1000,}")
_SHOWN_CHARS = 100


def hide_known(text: str) -> str:
    """Return `text` without the secrets that this process knows. This is for data: nothing else is touched."""
    return _without(text, _forms_in(tuple(os.environ.items())))


def hide_known_in(value: Any) -> Any:
    """Return a JSON value with `hide_known` done to each of its texts, keys included."""
    if isinstance(value, str):
        return hide_known(value)
    if isinstance(value, Mapping):
        return {hide_known_in(key): hide_known_in(inner) for key, inner in value.items()}
    return [hide_known_in(inner) for inner in value] if isinstance(value, list | tuple) else value


def hide_known_json(text: str, indent: int | None = None) -> str:
    """Return a JSON text with `hide_known` done to the texts in it; numbers stay what they are."""
    return next(hide_known_jsons([text], indent))


def hide_known_jsons(texts: Iterable[str], indent: int | None = None) -> Iterator[str]:
    """Yield each JSON text with `hide_known_json` done to it; the environment is read once for all of them."""
    forms = _forms_in(tuple(os.environ.items()))
    for text in texts:
        if _without(text, forms) == text:
            yield text
        else:
            yield json.dumps(hide_known_in(json.loads(text)), indent=indent, ensure_ascii=False)


def redact(text: str) -> str:
    """Return `text` without known secrets and without what has the shape of a provider's key. This is for pages."""
    text = hide_known(text)
    return _hidden(text, [pattern for signs, pattern in _LOOKS_SECRET if any(sign in text for sign in signs)])


def shown(text: str) -> str:
    """Return `text` as it may leave on a page or a terminal: redacted, control characters visible."""
    return visible(redact(text))


def redact_sentence(text: str) -> str:
    """Return a sentence of an error without known secrets and without anything that may be one."""
    return _hidden(redact(text), _SAID_SECRET)


def redact_value(value: str) -> str:
    """Return a value of the configuration, as it was given, without a secret in it, also where it is percent-coded."""
    found = redact_sentence(_NAMELESS.sub(rf"\1{HIDDEN}", _hidden(value, _GIVEN_SECRET)))
    plain = unquote(found)
    decoded = redact_sentence(_hidden(plain, _GIVEN_SECRET))
    return found if decoded == plain else decoded


def holds_secret(value: str) -> bool:
    """Tell whether a value of the configuration holds a secret, or may hold one."""
    return redact_value(value) != value


def names_secret(option: str) -> bool:
    """Tell whether an option of this name would hold a secret."""
    return re.search(_WORDS, option, re.IGNORECASE) is not None


def one_line(text: str, limit_chars: int = 300) -> str:
    """Return what a server said on one line: redacted, control characters visible, cut to `limit_chars` characters."""
    words = " ".join(hide_known(text).split())[:_READ_CHARS]
    return visible(redact_sentence(words))[:limit_chars]


def _without(text: str, forms: tuple[str, ...]) -> str:
    for form in forms:
        text = text.replace(form, HIDDEN)
    for form in forms:  # longer pieces of it, too: a reply may end in the middle of it
        # Pieces begin side by side, so that every longer run of the secret holds one.
        for start in range(0, max(1, len(form) - _PIECE_CHARS + 1), _PIECE_CHARS):
            piece = form[start : start + _PIECE_CHARS]
            place = text.find(piece)
            while place >= 0:
                before = _n_alike(form[:start][::-1], text[max(0, place - start) : place][::-1])
                after = _n_alike(form[start:], text[place : place + len(form) - start])
                text = text[: place - before] + HIDDEN + text[place + after :]
                place = text.find(piece, place - before + len(HIDDEN))
    return text


def _hidden(text: str, patterns: Sequence[re.Pattern[str]]) -> str:
    for pattern in patterns:
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return text


@lru_cache(maxsize=4)  # asked for each text that is written or shown
def _forms_in(environment: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return the secrets as texts may hold them, longest first: what holds another is hidden whole."""
    found = {secret for _, value in environment if "://" in value for secret in _of_address(value)}
    for name, value in environment:
        if _NAMED.search(name) and not ("pass" in name.lower() and _is_word(value)):
            found.add(value)
    long_enough = (secret for secret in found if len(secret) >= SHORTEST_CHARS)
    # A variable named like a key may hold the place of one, whose folders are no secret.
    secrets = [s for s in long_enough if not (s[0] in "/~." and Path(s).expanduser().exists())]
    forms = {form for secret in secrets for form in _written(secret) if len(form) >= SHORTEST_CHARS}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def _is_word(password: str) -> bool:
    """Tell whether ordinary texts may hold a password: few letters, of one case or capitalized."""
    alike = (password.lower(), password.upper(), password.capitalize())
    return len(password) < _LONGEST_WORD_CHARS and password.isalpha() and password in alike


def _of_address(text: str) -> Iterator[str]:
    """Yield the password of an address, and user and password as they are sent for it."""
    scheme, _, rest = text.partition("://")
    if scheme in ("postgres", "postgresql"):  # whose library ends a password at none of `/?#[`
        user, _, password = rest.rpartition("@")[0].partition(":")
        query = rest.rpartition("@")[2].partition("?")[2]
    else:
        try:
            parts = urlsplit(text)
            user, password, query = parts.username or "", parts.password or "", parts.query
        except ValueError:
            return
    user, password = unquote(user), unquote(password)
    if password:
        yield f"{user}:{password}"
        if not _is_word(password):
            yield password
    for option in query.split("&"):
        name, _, value = option.partition("=")
        if names_secret(name):
            yield unquote(value)


def _written(secret: str) -> Iterator[str]:
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield html.escape(secret)
    yield from (quote(secret), quote(secret, safe=""), quote_plus(secret))
    data = secret.encode(errors="surrogateescape")
    yield from (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode())
    for before in range(3):  # how far into a group of three bytes the secret begins
        whole = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        inner = whole[(0, 2, 3)[before] : len(whole) - ((before + len(data)) % 3 > 0)]
        yield from (inner, inner.translate({ord("+"): "-", ord("/"): "_"}))


def _n_alike(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


def shortened(sentence: str) -> str:
    """Return a sentence for people in which no word, that somebody gave, goes on for a thousand characters."""
    return _ENDLESS.sub(lambda found: f"{found[0][:_SHOWN_CHARS]}…", sentence)


def visible(text: str) -> str:
    """Return `text` with every control character shown in place of sent; anything else is left as it is."""
    return CONTROL.sub(lambda one: f"\\x{ord(one[0]):02x}" if one[0] < "\u0100" else f"\\u{ord(one[0]):04x}", text)


def visible_json(text: str) -> str:
    """Return a JSON text whose control characters are escaped as JSON does it, so that it holds the same values."""
    return CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
