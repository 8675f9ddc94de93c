"""Two texts word by word: what of one the other does not have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

_WORD = re.compile(r"\s*\S+\s*")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text; `marked` is what is to be seen in it."""

    text: str
    marked: bool = False


def compared(before: str, after: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return both texts in pieces, of which the words are marked that the other text does not have in that order."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    gone, fresh = [True] * len(old), [True] * len(new)
    for start, other, size in SequenceMatcher(None, _bare(old), _bare(new), autojunk=False).get_matching_blocks():
        gone[start : start + size] = [False] * size
        fresh[other : other + size] = [False] * size
    return _pieces(old, gone), _pieces(new, fresh)


def _bare(words: list[str]) -> list[str]:
    return [word.strip() for word in words]


def _pieces(words: list[str], marked: list[bool]) -> tuple[Piece, ...]:
    groups = groupby(zip(words, marked, strict=True), key=lambda pair: pair[1])
    return tuple(
        piece for is_marked, group in groups for piece in _piece("".join(word for word, _ in group), is_marked)
    )


def _piece(text: str, is_marked: bool) -> list[Piece]:
    """Return a piece, its last white space unmarked."""
    end = len(text.rstrip()) if is_marked else len(text)
    return [Piece(part, part_is) for part, part_is in ((text[:end], is_marked), (text[end:], False)) if part]
