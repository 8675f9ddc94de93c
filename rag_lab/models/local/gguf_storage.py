"""Stores the weights of a GGUF file in another type, once: the packaged ones as Q8_0 unless another is asked for.

llama.cpp has fast matrix kernels for Q8_0 on AVX2 and none for the packaged Q4_1 (320 against 150 to 190 tokens a
second measured with SmolLM2-135M on two cores). Q8_0 holds every Q4_1 value to within half a step of its own scale.
More bits than the source has bring nothing back: they only keep what it still knows.
"""

import ctypes
import logging
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_lab.errors import ModelError
from rag_lab.models.local.local_model import keep_converted
from rag_lab.models.weights import file_digest

GIVEN = "given"
KV_TYPES = ("f16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")  # of which llama.cpp can keep keys and values
_LOG = logging.getLogger(__name__)
_OFTEN_READ = ("token_embd.weight", "output.weight")  # llama.cpp keeps these at 6 to 8 bits: every token needs them


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
WEIGHTS = (GIVEN, *TYPES)


def quantized(values: npt.NDArray[np.float32], kind: StoredType) -> npt.NDArray[np.uint8]:
    """Return `values` of shape (..., row) as bytes of shape (..., row / block * block_bytes)."""
    from gguf import GGMLQuantizationType, quants

    with suppress(NotImplementedError, ValueError):  # a type that gguf only reads, or does not know
        return np.asarray(quants.quantize(values, GGMLQuantizationType(kind.number)))
    row = values.shape[-1]
    n_rows = values.size // row
    source = np.ascontiguousarray(values, np.float32)
    target = np.empty((*values.shape[:-1], row // kind.block * kind.block_bytes), np.uint8)
    quantize = _llamacpp().ggml_quantize_chunk
    quantize.restype = ctypes.c_size_t
    quantize.argtypes = (ctypes.c_int, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 3, ctypes.c_void_p)
    written = quantize(kind.number, source.ctypes.data, target.ctypes.data, 0, n_rows, row, None)
    if written != target.nbytes:
        raise ValueError(f"llama.cpp wrote {written} bytes in place of {target.nbytes}")
    return target


@cache
def _llamacpp() -> Any:
    """Return llama.cpp as xllamacpp ships it; its quantizer is an open function of C (ggml.h), not one of Python's."""
    try:
        from xllamacpp import xllamacpp

        library = ctypes.CDLL(xllamacpp.__file__)
        library.ggml_quantize_chunk  # noqa: B018 - looked up now, so that its lack is one sentence
    except (ImportError, OSError, AttributeError):
        raise ValueError("this build of xllamacpp shows no quantizer, and gguf has none for this type") from None
    return library


def stored_as(source: Path, kind: str) -> Path:
    """Return the copy of a GGUF file with weights of this type, made on first use below the home folder.

    As llama.cpp's own quantizer does it: vectors stay as they are, embeddings keep at least eight bits, and where rows
    are no multiples of a type's block, another type takes its place (`StoredType.instead`). Safe between processes.
    `source` is a GGUF file whose weights are of any type that the library gguf can read, `kind` a key of `TYPES`.
    """
    return keep_converted(
        f"{file_digest(source).rpartition(':')[2][:16]}-{kind}.gguf", lambda partial: _convert(source, partial, kind)
    )


def stored_bytes(tensor: Any, kind: str) -> int:
    """Return how many bytes a tensor of a GGUF file takes once it is stored as `kind`, or as it is (`given`)."""
    from gguf import GGMLQuantizationType

    is_vector = tensor.tensor_type == GGMLQuantizationType.F32 and len(tensor.shape) == 1
    if kind == GIVEN or is_vector:
        return int(tensor.n_bytes)
    row = int(tensor.shape[0])  # of a GGUF file's shapes the first is the row
    return int(tensor.n_elements * TYPES[_type_for(tensor.name, row, kind)].bits / 8)


def _convert(source: Path, target: Path, kind: str) -> None:
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, quants

    _LOG.info("Storing %s as %s, once", source.name, kind.upper())
    try:
        reader = GGUFReader(source)
        writer = GGUFWriter(target, reader.fields["general.architecture"].contents())
        file_type = TYPES[kind].file_type
        for key, stored in reader.fields.items():
            if key.startswith("GGUF.") or key in ("general.architecture", "general.file_type"):
                continue
            inner = stored.types[-1] if stored.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(key, stored.contents(), stored.types[0], sub_type=inner)
        if file_type is not None:
            writer.add_file_type(file_type)
        for tensor in reader.tensors:
            if tensor.tensor_type == GGMLQuantizationType.F32 and len(tensor.shape) == 1:  # norms and biases
                writer.add_tensor(tensor.name, tensor.data)
                continue
            values = quants.dequantize(tensor.data, tensor.tensor_type)
            if kind == "f16":
                writer.add_tensor(tensor.name, values.astype("float16"))
                continue
            into = TYPES[_type_for(tensor.name, values.shape[-1], kind)]
            rows = quantized(values, into).view("int8")
            writer.add_tensor(tensor.name, rows, raw_shape=values.shape, raw_dtype=into.number)
    except (ValueError, KeyError, NotImplementedError) as error:
        raise ModelError(
            f"{source.name} is not a GGUF file that can be stored as {kind.upper()}: {error}; give its weights in one "
            "of the usual types."
        ) from error
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _type_for(tensor: str, row: int, kind: str) -> str:
    """Return the type that a tensor is stored in where the file is to be of `kind`, its rows being `row` long."""
    if tensor in _OFTEN_READ and TYPES[kind].bits < TYPES["q8_0"].bits:
        kind = "q8_0"
    while row % TYPES[kind].block:
        if not TYPES[kind].instead:
            raise ValueError(f"rows of {row} values cannot be stored as {kind.upper()}")
        kind = TYPES[kind].instead
    return kind
