"""Unit vectors in fewer bits: as int8, each by its largest number, a quarter of the bytes of float32.

`binary` keeps signs as well, one bit a number: a search counts in how many bits query and row differ (Hamming), and
only the nearest rows by that are compared as int8. So it reads less, and keeps an eighth more. Queries stay float32.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_lab.models.protocols import Vectors, as_int8
from rag_lab.stores.config import VectorKind

QUANTIZED_VERSION = 1  # raised when a quantization gives other numbers
RESCORED = 8  # times as many rows as are wanted are compared as int8, of those that are nearest by their signs
INT8_FILE = "int8.npy"
_SAMPLE, _NEIGHBOURS = 50, 10  # of the children, for which it is counted what the quantization changes


class QuantizedVectors:
    """(n, dim) unit vectors in a folder, mapped into memory; what is taken of them is float32."""

    def __init__(self, path: Path) -> None:
        self._whole: npt.NDArray[np.int8] = np.load(path / INT8_FILE, mmap_mode="r", allow_pickle=False)
        self._lengths: npt.NDArray[np.float32] = np.load(path / "lengths.npy", allow_pickle=False)
        self.is_binary = (path / "signs.npy").exists()
        if self.is_binary:  # (n_words, n): the signs of 64 numbers a word
            self._signs: npt.NDArray[np.uint64] = np.load(path / "signs.npy", mmap_mode="r", allow_pickle=False)
        self.shape = self._whole.shape

    def __getitem__(self, rows: Any) -> Vectors:
        whole: Vectors = self._whole[rows].astype(np.float32)
        whole /= self._lengths[rows][..., None]
        return whole

    def alike(self, queries: Vectors, rows: Any) -> npt.NDArray[np.float32]:
        """Return (n_queries, n_rows): minus the number of bits in which the signs of query and row differ."""
        signs, asked = self._signs[:, rows], words_of_signs(queries)
        return np.stack([-np.bitwise_count(signs ^ one[:, None]).sum(axis=0, dtype=np.float32) for one in asked])


def write_quantized(path: Path, vectors: Vectors, kind: VectorKind) -> None:
    """Write unit vectors, (n, dim), into the folder `path`."""
    whole = as_int8(vectors)[0]
    lengths = np.linalg.norm(whole.astype(np.float32), axis=1)
    np.save(path / INT8_FILE, whole, allow_pickle=False)
    np.save(path / "lengths.npy", np.where(lengths > 0, lengths, 1), allow_pickle=False)
    if kind == "binary":
        np.save(path / "signs.npy", np.ascontiguousarray(words_of_signs(vectors).T), allow_pickle=False)


def words_of_signs(vectors: Vectors) -> npt.NDArray[np.uint64]:
    """Return the signs of each vector as words, (n, n_words)."""
    signs = np.packbits(vectors > 0, axis=1)
    padded = np.pad(signs, ((0, 0), (0, -signs.shape[1] % 8)))
    return padded.view(np.uint64)


def neighbours_kept(vectors: Vectors, search: Callable[[Vectors, int], npt.NDArray[np.int64]]) -> float:
    """Return the share of the ten nearest of some vectors, compared as float32, that `search` finds among its ten."""
    k = min(_NEIGHBOURS + 1, len(vectors))  # a vector finds itself, which counts nothing
    asked = vectors[np.unique(np.linspace(0, len(vectors) - 1, _SAMPLE).astype(int))]
    nearest = np.argpartition(asked @ vectors.T, -k, axis=1)[:, -k:]
    found = sum(len({*a} & {*b}) - 1 for a, b in zip(nearest.tolist(), search(asked, k).tolist(), strict=True))
    return round(found / max(1, len(asked) * (k - 1)), 4)
