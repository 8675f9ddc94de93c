"""One spelling for what looks the same: Unicode, whitespace, and words broken at a line's end.

Nothing here uses a pattern that can go back over a long run of text again and again: files are not trusted.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from rag_lab.records import Document

_LINE_ENDS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
_BLANK_LINES = re.compile("\n{3,}")
_SPELT = str.maketrans({
    "\ufb00": "ff", "\ufb01": "fi", "\ufb02": "fl", "\ufb03": "ffi", "\ufb04": "ffl", "\ufb05": "st", "\ufb06": "st",
    "\u2010": "-", "\u2011": "-",
})  # fmt: skip
_LETTER = r"[^\W\d_]"
_SOFT_BREAK = re.compile(rf"(?<={_LETTER})\u00ad(?=[ \t]*\n)")
_BREAK = re.compile(rf"(?<={_LETTER})-\n[ \t]*(?={_LETTER})")
_WORD = re.compile(rf"{_LETTER}+(?:-{_LETTER}+)*")
_LINKS = frozenset({"und", "oder", "bzw", "sowie", "and", "or"})
_LONGEST_WORD = 40
_LAST_LETTERS = re.compile(rf"{_LETTER}+\Z")
_FIRST_LETTERS = re.compile(rf"{_LETTER}{{1,{_LONGEST_WORD}}}")


def normalize(text: str) -> str:
    """Return `text` in composed Unicode (NFC), with `\\n` as its only line end and space and tab as its only spaces.

    Invisible and control characters go, except the joiners that some scripts and emoji are written with; ligatures are
    spelt out, hyphens are `-`, lines end without spaces, and two blank lines or more become one. Words broken at a
    line's end stay as they are: `join_words` mends those of a whole file.
    """
    text = unicodedata.normalize("NFC", text).translate(_SPELT)
    text = _SPACES.sub(" ", _LINE_ENDS.sub("\n", text))
    text = _UNSEEN.sub("", _SOFT_BREAK.sub("-", text))
    text = "\n".join(line.rstrip(" \t") for line in text.split("\n"))
    return _BLANK_LINES.sub("\n\n", text).strip("\n")


def join_words(texts: Sequence[str]) -> list[str]:
    """Return the texts of one file with the words joined that a hyphen breaks at a line's end.

    The hyphen stays where the file writes the word with it elsewhere and never without (`high-pressure`), and where a
    part is not in lower case (`P-12`). Before `und`, `or` and the like it stands for a part of a word that comes later
    (`Ein- und Ausgang`).
    """
    if not any(_BREAK.search(text) for text in texts):
        return list(texts)
    words = {word for text in texts for word in _WORD.findall(text.lower())}
    return [_BREAK.sub(lambda match: _joint(match, words), text) for text in texts]


def normalize_documents(documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the documents of one file with text and title normalized; those that hold no text are left out."""
    texts = join_words([normalize(document.text) for document in documents])
    return tuple(
        replace(document, text=text, title=" ".join(normalize(document.title).split()))
        for document, text in zip(documents, texts, strict=True)
        if text.strip()
    )


def _joint(match: re.Match[str], words: set[str]) -> str:
    """Return what stands in place of a hyphen and the line end behind it."""
    text, start, end = match.string, match.start(), match.end()
    left = _LAST_LETTERS.search(text[max(0, start - _LONGEST_WORD) : start])
    right = _FIRST_LETTERS.match(text, end)
    if left is None or right is None or not (left[0][-1].islower() and right[0][0].islower()):
        return match[0]
    first, second = left[0].lower(), right[0].lower()
    if second in _LINKS and first + second not in words:
        return "- "
    return "-" if f"{first}-{second}" in words and first + second not in words else ""
