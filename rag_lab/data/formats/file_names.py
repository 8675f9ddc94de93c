"""File names for what has only an id or a title."""

from __future__ import annotations

import unicodedata

_MAX_CHARS = 60  # at most 240 bytes in UTF-8, which leaves room for a number and a suffix within 255


class FileNames:
    """Hands out names that are safe on every file system and distinct, also where upper and lower case are the same."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}  # of each stem the last number that was tried: the lower ones are taken

    def name(self, text: str, default: str) -> str:
        """Return a name for `text` that no earlier call returned; letters and digits of every script are kept."""
        stem = safe_name(text) or default
        number = self._numbers.get(stem.casefold(), 0)
        name = ""
        while not name or name.casefold() in self._taken:
            number += 1
            name = stem if number == 1 else f"{stem}_{number}"
        self._numbers[stem.casefold()] = number
        self._taken.add(name.casefold())
        return name


def safe_name(text: str) -> str:
    """Return `text` as the stem of a file name: all but letters, marks, digits and `-` becomes `_`; may be empty."""
    normal = unicodedata.normalize("NFC", text)
    kept = "".join(char if _is_kept(char) else "_" for char in normal)
    return "_".join(part for part in kept.split("_") if part)[:_MAX_CHARS]


def _is_kept(char: str) -> bool:
    return char == "-" or unicodedata.category(char)[0] in "LMN"
