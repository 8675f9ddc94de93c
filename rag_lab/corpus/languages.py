"""Which language a text is in, recognized by the words that every text of it is full of, and which one a corpus is in.

The lists of words are those of bm25s. A language that has none is not guessed: its texts are in none, as are numbers,
code and a few words. Greek, Japanese, Korean, Thai and Chinese are recognized by their letters.
"""

from collections import Counter
from collections.abc import Iterable
from functools import cache

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
