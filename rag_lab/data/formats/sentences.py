"""The sentence in which something stands, roughly: enough to quote it."""

from __future__ import annotations

from rag_lab.corpus.sentence_units import SENTENCE_END

_MIN_CHARS = 20  # shorter is an abbreviation's end or a heading


def quote_around(text: str, start: int, end: int) -> str:
    """Return the sentence or sentences of `text` that hold text[start:end], verbatim.

    The quote grows by neighbouring sentences until it is at least 20 characters long and stands in `text` only once.
    """
    bounds = sorted({0, *(match.end() for match in SENTENCE_END.finditer(text)), len(text)})
    first = max(index for index, bound in enumerate(bounds) if bound <= start)
    last = min(index for index, bound in enumerate(bounds) if bound >= end)
    while first > 0 or last < len(bounds) - 1:
        quote = text[bounds[first] : bounds[last]].strip()
        if len(quote) >= _MIN_CHARS and _is_unique(quote, text):
            return quote
        first, last = max(0, first - 1), min(len(bounds) - 1, last + 1)
    return text.strip()


def _is_unique(quote: str, text: str) -> bool:
    return text.find(quote, text.find(quote) + 1) == -1
