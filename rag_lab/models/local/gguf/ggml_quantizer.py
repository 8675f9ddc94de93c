"""Rounds weights to a type: by the library gguf where it can, else by llama.cpp itself, whose C interface offers it."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_lab.models.local.gguf.gguf_types import StoredType


def quantized(values: npt.NDArray[np.float32], kind: StoredType) -> npt.NDArray[np.uint8]:
    """Return `values` of shape (..., row) as bytes of shape (..., row / block * block_bytes).

    Raises:
        ValueError: if neither library rounds to this type.
    """
    from gguf import GGMLQuantizationType, quants

    try:
        return np.asarray(quants.quantize(values, GGMLQuantizationType(kind.number)))
    except (NotImplementedError, ValueError):  # a type that gguf only reads, or does not know
        return _by_llamacpp(values, kind)


def _by_llamacpp(values: npt.NDArray[np.float32], kind: StoredType) -> npt.NDArray[np.uint8]:
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
