"""The head of a GGUF file: settings, vocabulary and what weights follow, read in a tenth of a second without them."""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_MAGIC = b"GGUF"
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LENGTH = struct.Struct("<Q")  # of a text, before it
_ALIGNMENT = 32  # of the weights, where the file names no other


def gguf_metadata(path: Path, *, with_lists: bool = True) -> dict[str, Any] | None:
    """Return the keys and values at the head of a GGUF file (little endian); None where it is none, or not whole.

    Without lists, as that of all tokens, it takes a fraction of the time, and their values are None.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            reader = _Reader(content)
            if content[:4] != _MAGIC:
                return None
            n_pairs = reader.number("IQQ", at=4)[2]
            return dict(reader.pair(with_lists) for _ in range(n_pairs))
    except (OSError, ValueError, KeyError, struct.error):
        return None


def gguf_problem(path: Path) -> str:
    """Return why a file cannot be loaded, as a sentence goes on after its name, or ''; only its head is read."""
    there = path.stat().st_size
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            return "is no GGUF file"
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            whole = _Reader(content).size()
    except KeyError:  # a type of weights that is newer than the installed gguf
        return ""
    except (ValueError, struct.error):
        return f"is cut short or damaged within its head ({there:,} bytes are there)"
    return f"is cut short ({there:,} of {whole:,} bytes are there)" if there < whole else ""


@dataclass
class _Reader:
    content: mmap.mmap
    place: int = 0

    def number(self, form: str, at: int | None = None) -> tuple[Any, ...]:
        form = f"<{form}"
        start = self.place if at is None else at
        self.place = start + struct.calcsize(form)
        return struct.unpack_from(form, self.content, start)

    def size(self) -> int:
        """Return the size in bytes of the whole file, by the weights that its head announces."""
        _, n_tensors, n_pairs = self.number("IQQ", at=4)
        settings = dict(self.pair(with_lists=False) for _ in range(n_pairs))
        ends = [self.end_of_tensor() for _ in range(n_tensors)]
        alignment = int(settings.get("general.alignment", _ALIGNMENT))
        return -(-self.place // alignment) * alignment + max(ends, default=0)

    def end_of_tensor(self) -> int:
        """Return where a tensor's weights end, counted from where all weights begin."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        self.text()
        (n_dims,) = self.number("I")
        n_weights = math.prod(self.number(f"{n_dims}Q"))
        kind, offset = self.number("IQ")
        if kind not in set(GGMLQuantizationType):
            raise KeyError(kind)
        block, n_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
        return int(offset + n_weights // block * n_bytes)

    def pair(self, with_lists: bool) -> tuple[str, Any]:
        key = self.text()
        (kind,) = self.number("I")
        return key, self.value(kind, with_lists)

    def text(self) -> str:
        start, end = self.pass_texts(1)[0]
        return self.content[start:end].decode(errors="replace")

    def pass_texts(self, n: int) -> list[tuple[int, int]]:
        """Return where each of the next texts begins and ends; there are a hundred thousand in a file."""
        place, spans, size = self.place, [], len(self.content)
        for _ in range(n):
            start = place + _LENGTH.size
            place = start + _LENGTH.unpack_from(self.content, place)[0]
            if place > size:
                raise ValueError(place)
            spans.append((start, place))
        self.place = place
        return spans

    def value(self, kind: int, with_lists: bool) -> Any:
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.number(_NUMBERS[kind])[0]
        inner, length = self.number("IQ")
        if length > len(self.content):
            raise ValueError(length)
        if inner == _STRING:
            spans = self.pass_texts(length)
            return [self.content[start:end].decode(errors="replace") for start, end in spans] if with_lists else None
        numbers = self.number(f"{length}{_NUMBERS[inner]}")
        return list(numbers) if with_lists else None
