"""From text to terms, for any script, and the analyzer that a language asks for.

Texts are normalized (NFKC, case folded) and cut at everything that is no letter, digit or mark. Scripts that are
written without spaces (Chinese, Japanese, Thai, ...) become overlapping pairs of characters, which need no dictionary
and search about as well as words do (Nie, Gao, Zhang and Zhou 2000, "On the use of words and n-grams for Chinese
information retrieval"). An analyzer named after a language then takes words to their stems by Snowball (Porter 2001);
`ngrams` cuts words into three characters instead, which finds inflected and compound words of any language.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Literal, cast

Analyzer = Literal[
    "unicode", "ngrams", "arabic", "danish", "dutch", "english", "finnish", "french", "german", "greek", "hungarian",
    "italian", "norwegian", "portuguese", "romanian", "russian", "spanish", "swedish", "turkish",
]  # fmt: skip

VERSION = 1  # raised when an analyzer gives other terms than before
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_TERM = rf"(?P<unspaced>[{_UNSPACED}]\p{{M}}*)+|[\p{{L}}\p{{N}}\p{{M}}--[{_UNSPACED}]]+"
_N = 3
AnalyzerChoice = Analyzer | Literal["auto"]
_PLAIN: Analyzer = "unicode"
# ISO 639-1, then 639-2 and 639-3 (https://www.loc.gov/standards/iso639-2).
_CODES = {
    "arabic": "ar ara arb", "danish": "da dan", "dutch": "nl nld dut", "english": "en eng", "finnish": "fi fin",
    "french": "fr fra fre", "german": "de deu ger", "greek": "el ell gre", "hungarian": "hu hun", "italian": "it ita",
    "norwegian": "no nor nb nob nn nno", "portuguese": "pt por", "romanian": "ro ron rum", "russian": "ru rus",
    "spanish": "es spa", "swedish": "sv swe", "turkish": "tr tur",
}  # fmt: skip
_BY_NAME = {name: language for language, codes in _CODES.items() for name in (language, *codes.split())}


def terms(texts: Sequence[str], analyzer: Analyzer) -> list[list[str]]:
    """Return the terms of each text, in order, repetitions kept; a text without letters and digits has none."""
    stem = None if analyzer in ("unicode", "ngrams") else _stemmer(analyzer).stemWord
    found: list[list[str]] = []
    for text in texts:
        of_text: list[str] = []
        for match in _pattern().finditer(unicodedata.normalize("NFKC", text).casefold()):
            characters, word = match.captures("unspaced"), match.group()
            if len(characters) > 1:
                of_text += [first + second for first, second in pairwise(characters)]
            elif characters or analyzer == "unicode":
                of_text.append(word)
            elif stem:
                of_text.append(stem(word))
            else:
                marked = f"_{word}_"
                of_text += [marked[start : start + _N] for start in range(max(1, len(marked) - _N + 1))]
        found.append(of_text)
    return found


@cache
def _pattern() -> Any:
    import regex

    return regex.compile(_TERM, flags=regex.V1)


@cache
def _stemmer(language: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(language)


def analyzer_for(choice: AnalyzerChoice, language: str) -> Analyzer:
    """Return `choice`, or for `auto` the analyzer of a language (English, en, en-US, deu); the plain one if unknown."""
    if choice != "auto":
        return choice
    name = re.split("[-_]", language.strip().casefold())[0]
    return cast("Analyzer", _BY_NAME.get(name, _PLAIN))
