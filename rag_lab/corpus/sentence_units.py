"""The units that sentence splitters put together: sentences, and table rows, which are never cut."""

from __future__ import annotations

import re
from itertools import pairwise

from rag_lab.corpus.spans import Span, row_spans, trimmed

# A full stop followed by a space, a full stop of the East Asian scripts or of Devanagari, or a line end.
SENTENCE_END = re.compile(r"""[.!?…؟]["'”’»)\]]*\s+|[。！？｡।][”’」』）]*\s*|\n+""")
# A heading's or paragraph's end; a line that merely wraps does not end a sentence.
_PROSE_END = re.compile(r"""[.!?…؟]["'”’»)\]]*\s+|[。！？｡।][”’」』）]*\s*|\n{2,}|\n(?=[-*#|])""")
# Scripts without spaces between words (Thai, Japanese, Chinese): a character counts as a word.
UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")


def sentence_units(text: str) -> list[Span]:
    """Return the spans of the sentences and table rows of `text`, in order, without whitespace around them."""
    units: list[Span] = []
    rows = row_spans(text)
    for (_, before), (start, end) in pairwise([(0, 0), *rows, (len(text), len(text))]):
        bounds = [before, *(match.end() for match in _PROSE_END.finditer(text, before, start)), start]
        units += [*pairwise(bounds), (start, end)]
    return trimmed(text, units)


def words(text: str) -> list[Span]:
    """Return the spans of the words of `text`, in order. They hold every character that is not whitespace."""
    return [match.span() for match in _WORD.finditer(text)]
