"""How much a model's reading of a page says what the page's text layer says.

A weighted sum of four overlaps, each from 0 to 1: words 0.4, characters 0.2, sentences 0.3, edit distance 0.1. Markup,
case, and where lines end are left aside. The text layer may lack what a picture shows, and a model may leave out a
page's furniture, so the whole is a check against invention and omission, not a measure of quality.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator
from math import fsum

from rag_lab.corpus.normalize import join_words, normalize
from rag_lab.corpus.sentence_units import UNSPACED, sentence_units, words

WEIGHTS = {"words": 0.4, "characters": 0.2, "sentences": 0.3, "edits": 0.1}
_MINUS = re.compile(r"[\u2010-\u2015\u2212](?=\d)")
_MARKUP = re.compile(r"[|#*_`>~\\]+|-(?!\d)")  # a hyphen before a digit may be a minus sign
_CLOSE = rf"[{UNSPACED}\u3000-\u303f\uff01-\uff65]"  # with the punctuation of those scripts
_WRAPPED = re.compile(rf"(?<={_CLOSE}) (?={_CLOSE})")
_COMPARED_CHARS = 20_000  # of each text; the comparison of characters takes the product of the lengths
_MAX_SENTENCE_CHARS = 5_000


def likeness(reading: str, text_layer: str) -> float:
    """Return how alike two texts are, from 0 to 1; `overlaps` gives the parts."""
    return fsum(WEIGHTS[name] * value for name, value in overlaps(reading, text_layer).items())


def overlaps(reading: str, text_layer: str) -> dict[str, float]:
    """Return the four overlaps by name.

    Words and sentences: twice the number shared over the number in both (Dice). Characters: the longest common
    subsequence over the longer text. Edits: 1 minus the Levenshtein distance over the longer text.
    """
    from rapidfuzz.distance import LCSseq, Levenshtein

    texts = join_words([normalize(reading), normalize(text_layer)])
    first, second = (_bare(text) for text in texts)
    return {
        "words": _dice(_words(first), _words(second)),
        "characters": LCSseq.normalized_similarity(first[:_COMPARED_CHARS], second[:_COMPARED_CHARS]),
        "sentences": _dice(_sentences(*texts), _sentences(*reversed(texts))),
        "edits": Levenshtein.normalized_similarity(first[:_COMPARED_CHARS], second[:_COMPARED_CHARS]),
    }


def _bare(text: str) -> str:
    """Return a text as one line of small letters without markup."""
    return _unwrapped(" ".join(_MARKUP.sub(" ", _MINUS.sub("-", text)).casefold().split()))


def _unwrapped(line: str) -> str:
    """Return a line without the spaces that scripts without spaces get from their line ends."""
    return _WRAPPED.sub("", line)


def _words(text: str) -> list[str]:
    return [text[start:end] for start, end in words(text)]


def _units(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_units(text)]


def _sentences(text: str, other: str) -> Iterator[str]:
    """Yield the sentences of a text. What ends at a line's end is one where the other text has it as one.

    A text layer does not tell a heading or a table's row from a line of a paragraph; a reading in Markdown does.
    """
    known = {_bare(unit) for unit in _units(other)}
    for unit in _units(text):
        yield from _parted(map(_bare, unit.split("\n")), known)


def _parted(lines: Iterable[str], known: Collection[str]) -> Iterator[str]:
    """Yield runs of lines, each up to its end if it is known, and up to a known line else."""
    run = ""
    for line in lines:
        if run and line in known:
            yield run
            run = ""
        run = run[:-1] + _unwrapped(f"{run[-1:]} {line}".strip())
        if run in known or len(run) > _MAX_SENTENCE_CHARS:
            yield run
            run = ""
    if run:
        yield run


def _dice(first: Iterable[Hashable], second: Iterable[Hashable]) -> float:
    one, other = Counter(first), Counter(second)
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 1.0
