"""One spelling for what looks the same: Unicode, whitespace, broken words; where a quote stands; a text's language.

A language is recognized by the words that every text of it is full of, which are those of bm25s. One that has none is
not guessed: its texts are in none, as are numbers, code and a few words. Greek, Japanese, Korean, Thai and Chinese are
recognized by their letters.

Nothing here uses a pattern that can go back over a long run of text again and again: files are not trusted.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import accumulate

from rag_lab.records import Document

_LINE_ENDS = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)
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
_INVISIBLE = r"\s\u00ad\u200b"  # whitespace, soft hyphen, zero-width space
_LAYOUT = rf"{_INVISIBLE}|\\-"  # and what tables and broken words are made of


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
    return re.compile("\n{3,}").sub("\n\n", text).strip("\n")


def join_words(texts: Sequence[str]) -> list[str]:
    """Return the texts of one file with the words joined that a hyphen breaks at a line's end.

    It stays where the file writes the word with it elsewhere and never without (`high-pressure`), where a part is not
    in lower case (`P-12`), and before `und`, `or` and the like (`Ein- und Ausgang`).
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


def find_quote(text: str, quote: str) -> tuple[int, int] | None:
    """Return the half-open span of the first place where `quote` stands in `text`, whitespace aside; None if nowhere.

    Extraction breaks lines and words where it likes. Where it stands nowhere so, hyphens and bars are set aside, too.
    """
    normal = normalize(quote)
    for ignored in (_INVISIBLE, _LAYOUT):
        letters, numbers, starts = _letters(text, ignored)
        wanted = re.sub(f"[{ignored}]+", "", normal)
        first = letters.find(wanted) if wanted else -1
        if first >= 0:
            ends = first, first + len(wanted) - 1
            start, last = (starts[run := bisect_right(numbers, n) - 1] + n - numbers[run] for n in ends)
            return start, last + 1
    return None


@lru_cache(maxsize=16)  # the questions about one document stand together
def _letters(text: str, ignored: str) -> tuple[str, list[int], list[int]]:
    """Return what of `text` is not ignored, and of each run of it the number of letters before it, and its start."""
    found = [(match[0], match.start()) for match in re.finditer(f"[^{ignored}]+", text)]
    runs = [run for run, _ in found]
    return "".join(runs), [0, *accumulate(map(len, runs))], [start for _, start in found]


_LEAST_WORDS = 30
_LEAST_SHARE = 0.12  # of a text's words that its language's list holds; prose has 0.3 to 0.45, Russian 0.17
_MARGIN, _MORE = 1.5, 2  # times, and words: how many more are its own than the next likely language's own
_KNOWN = 0.5  # of a corpus must be in some language, by length
_MAIN = 0.8  # of that must be in one, for it to be said of the whole
_SCRIPTS = {
    "greek": r"\p{Greek}", "japanese": r"[\p{Hiragana}\p{Katakana}]", "korean": r"\p{Hangul}", "thai": r"\p{Thai}",
    "chinese": r"\p{Han}",
}  # fmt: skip
_SCRIPT_SHARE = 0.2  # of the letters: Japanese is written with Chinese characters, too


def language_of(text: str) -> str:
    """Return the language of a text in small letters, as `english`; '' where it cannot be known."""
    import regex  # which keeps what it compiled

    n_letters = 0 if text.isascii() else len(regex.findall(r"\p{L}", text))
    for name, script in _SCRIPTS.items() if n_letters else ():
        if len(regex.findall(script, text)) / n_letters >= _SCRIPT_SHARE:
            return name
    found = Counter(regex.findall(r"\p{L}{2,}", text.casefold()))
    n_words = found.total()
    if n_words < _LEAST_WORDS:
        return ""
    listed = {name: {word: found[word] for word in common if word in found} for name, common in common_words().items()}
    best, second = sorted(listed, key=lambda name: -sum(listed[name].values()))[:2]
    if sum(listed[best].values()) < _LEAST_SHARE * n_words:
        return ""
    only_best, only_second = (
        sum(count for word, count in listed[name].items() if word not in listed[other])
        for name, other in ((best, second), (second, best))
    )
    return best if only_best >= _MARGIN * only_second + _MORE else ""


def main_language(languages: Iterable[tuple[str, int]]) -> str:
    """Return the language of most of a corpus, '' where there is none: of each text its language, and its length."""
    lengths: Counter[str] = Counter()
    for name, length in languages:
        lengths[name] += length
    known = Counter({name: length for name, length in lengths.items() if name})
    if not known.total() or known.total() < _KNOWN * lengths.total():
        return ""
    name, length = known.most_common(1)[0]
    return name if length >= _MAIN * known.total() else ""


@cache
def common_words() -> dict[str, frozenset[str]]:
    """Return the words that every text is full of, in small letters, by language."""
    from bm25s import stopwords

    return {
        "english": frozenset(stopwords.STOPWORDS_EN_PLUS), "german": frozenset(stopwords.STOPWORDS_GERMAN),
        "french": frozenset(stopwords.STOPWORDS_FRENCH), "spanish": frozenset(stopwords.STOPWORDS_SPANISH),
        "italian": frozenset(stopwords.STOPWORDS_ITALIAN), "portuguese": frozenset(stopwords.STOPWORDS_PORTUGUESE),
        "dutch": frozenset(stopwords.STOPWORDS_DUTCH), "swedish": frozenset(stopwords.STOPWORDS_SWEDISH),
        "norwegian": frozenset(stopwords.STOPWORDS_NORWEGIAN), "danish": frozenset(stopwords.STOPWORDS_DANISH),
        "russian": frozenset(stopwords.STOPWORDS_RUSSIAN), "turkish": frozenset(stopwords.STOPWORDS_TURKISH),
    }  # fmt: skip
