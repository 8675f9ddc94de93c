"""The digest by which values know each other again, and names that it makes short and distinct."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_SYLLABLES = 5  # one of 1.7 billion words


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value, the same for any key order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def spoken(value: Any) -> str:
    """Return the digest of a JSON value as a word of five syllables, such as `bakimotura`, that people can say."""
    number, word = int(digest(value), 16), ""
    for _ in range(_SYLLABLES):
        number, consonant = divmod(number, len(_CONSONANTS))
        number, vowel = divmod(number, len(_VOWELS))
        word += _CONSONANTS[consonant] + _VOWELS[vowel]
    return word


def short_name(text: str, longest: int, value: Any) -> str:
    """Return `text`, cut at a word where it has more than `longest` characters, and told from others by `value`."""
    if len(text) <= longest:
        return text
    told = spoken(value)
    cut = re.split(r"[^A-Za-z0-9]+(?=[A-Za-z0-9]*$)", text[: longest - len(told) - 1])[0]
    return f"{cut.removesuffix('_and')}-{told}"
