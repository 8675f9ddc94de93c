"""How much a model's reading of a page says what the page's text layer says.

A weighted sum of four overlaps, each from 0 to 1: words 0.4, characters 0.2, sentences 0.3, edit distance 0.1. Markup
and case are left aside. The text layer may lack what a picture shows, and a model may leave out a page's furniture, so
the whole is a check against invention and omission, not a measure of quality.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from math import fsum

WEIGHTS = {"words": 0.4, "characters": 0.2, "sentences": 0.3, "edits": 0.1}
_MARKUP = re.compile(r"[|#*_`>~\\-]+")
_SENTENCE_END = re.compile(r"[.!?。！？]\s|[。！？]|\n")
_COMPARED_CHARS = 20_000  # of each text; the comparison of characters takes the product of the lengths


def likeness(reading: str, text_layer: str) -> float:
    """Return how alike two texts are, from 0 to 1; `overlaps` gives the parts."""
    return fsum(WEIGHTS[name] * value for name, value in overlaps(reading, text_layer).items())


def overlaps(reading: str, text_layer: str) -> dict[str, float]:
    """Return the four overlaps by name.

    Words and sentences: twice the number shared over the number in both (Dice). Characters: the longest common
    subsequence over the longer text. Edits: 1 minus the Levenshtein distance over the longer text.
    """
    from rapidfuzz.distance import LCSseq, Levenshtein

    first, second = _bare(reading), _bare(text_layer)
    return {
        "words": _dice(first.split(), second.split()),
        "characters": LCSseq.normalized_similarity(first[:_COMPARED_CHARS], second[:_COMPARED_CHARS]),
        "sentences": _dice(_sentences(reading), _sentences(text_layer)),
        "edits": Levenshtein.normalized_similarity(first[:_COMPARED_CHARS], second[:_COMPARED_CHARS]),
    }


def _bare(text: str) -> str:
    return " ".join(_MARKUP.sub(" ", text).casefold().split())


def _sentences(text: str) -> list[str]:
    return [bare for part in _SENTENCE_END.split(text) if (bare := _bare(part))]


def _dice(first: Iterable[Hashable], second: Iterable[Hashable]) -> float:
    one, other = Counter(first), Counter(second)
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0
