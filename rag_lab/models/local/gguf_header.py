"""The metadata of a GGUF file: settings and vocabulary, read in a tenth of a second without its weights."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MAGIC = b"GGUF"
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


def gguf_metadata(path: Path) -> dict[str, Any] | None:
    """Return the keys and values at the head of a GGUF file (little endian); None where it is none, or not whole."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            reader = _Reader(content)
            if content[:4] != _MAGIC:
                return None
            n_pairs = reader.number("IQQ", at=4)[2]
            return dict(reader.pair() for _ in range(n_pairs))
    except (OSError, ValueError, KeyError, struct.error):
        return None


@dataclass
class _Reader:
    content: mmap.mmap
    place: int = 0

    def number(self, form: str, at: int | None = None) -> tuple[Any, ...]:
        form = f"<{form}"
        start = self.place if at is None else at
        self.place = start + struct.calcsize(form)
        return struct.unpack_from(form, self.content, start)

    def pair(self) -> tuple[str, Any]:
        key = self.text()
        (kind,) = self.number("I")
        return key, self.value(kind)

    def text(self) -> str:
        (length,) = self.number("Q")
        start = self.place
        self.place = start + length
        if self.place > len(self.content):
            raise ValueError(length)
        return self.content[start : self.place].decode(errors="replace")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.number(_NUMBERS[kind])[0]
        inner, length = self.number("IQ")
        if length > len(self.content):
            raise ValueError(length)
        if inner == _STRING:
            return [self.text() for _ in range(length)]
        return list(self.number(f"{length}{_NUMBERS[inner]}"))
