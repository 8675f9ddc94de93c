"""Replies that go round in a circle: small models, decoded greedily, say one thing until the tokens run out."""

from __future__ import annotations

import re

_LEAST_LETTERS = 6
_SAID_AGAIN = r"(?P<said>\S.{7,199}?)(?:\s*(?P=said)){2,}"
# A round begins with a sentence, else with a word.
_ROUNDS = [re.compile(begin + _SAID_AGAIN, re.DOTALL) for begin in (r"(?:^|(?<=[.!?]\s)|(?<=[。！？\n]))", r"(?<!\S)")]
_MOST_CHARS = 20_000  # a longer reply is left as it is: looking for rounds takes time


def without_loop(text: str) -> tuple[str, int]:
    """Return a text that ends in a circle with each round once, and how many rounds there were; 0 where it does not.

    What follows the last round is left out where it is the beginning of another, cut off. Three rounds are a circle,
    and what is said in each has letters: rows of dashes and zeros are none.
    """
    if len(text) > _MOST_CHARS:
        return text, 0
    for found in (found for rounds in _ROUNDS for found in rounds.finditer(text)):
        said, rest = found["said"], text[found.end() :].strip()
        if sum(char.isalpha() for char in said) >= _LEAST_LETTERS and said.startswith(rest):
            return text[: found.start()] + said, found[0].count(said)
    return text, 0
