"""The ways in which llama.cpp stores weights and what it has read, by the names that people write."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoredType:
    """One type of a GGUF file's numbers (ggml.h, `ggml_type`; llama.h, `llama_ftype`)."""

    number: int  # in a file
    block: int  # values that are stored together: rows are multiples of it
    block_bytes: int
    file_type: int | None = None  # of a file that mostly holds it; None where llama.cpp had better look itself
    instead: str = ""  # what llama.cpp stores in its place where rows are no multiples

    @property
    def bits(self) -> float:
        """Bits a value takes, the scale of its block included."""
        return 8 * self.block_bytes / self.block


TYPES = {
    "f16": StoredType(1, 1, 2, 1),
    "q8_0": StoredType(8, 32, 34, 7),
    "q6_k": StoredType(14, 256, 210, 18, "q8_0"),
    "q5_k": StoredType(13, 256, 176, 16, "q5_1"),
    "q5_1": StoredType(7, 32, 24, 9),
    "q5_0": StoredType(6, 32, 22, 8),
    "q4_k": StoredType(12, 256, 144, 14, "q5_0"),
    "q4_1": StoredType(3, 32, 20, 3),
    "q4_0": StoredType(2, 32, 18, 2),
    "iq4_nl": StoredType(20, 32, 18, 25),
    "q3_k": StoredType(11, 256, 110, 11, "iq4_nl"),
    "q2_k": StoredType(10, 256, 84, 10, "iq4_nl"),
    "q2_0": StoredType(42, 64, 18),
}
GIVEN = "given"
WEIGHTS = (GIVEN, *TYPES)
KV_TYPES = ("f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")  # of which llama.cpp can keep keys and values
