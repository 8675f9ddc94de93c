"""The analyzer that a language asks for, by the name or the code that a dataset gives it."""

from __future__ import annotations

import re
from typing import Literal, cast

from rag_lab.stores.sparse.analyzer import Analyzer

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


def analyzer_for(choice: AnalyzerChoice, language: str) -> Analyzer:
    """Return `choice`, or for `auto` the analyzer of a language; the plain one, where it has none or is not known.

    Args:
        choice: as a configuration has it.
        language: a name or a code, with or without a region: English, en, en-US, deu.
    """
    if choice != "auto":
        return choice
    name = re.split("[-_]", language.strip().casefold())[0]
    return cast("Analyzer", _BY_NAME.get(name, _PLAIN))
