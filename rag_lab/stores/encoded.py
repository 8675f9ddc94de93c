"""Texts as a model encodes them, in more than a vector each, and all of them compared with a query.

`late` keeps the vectors of their tokens as int8 (late interaction; Khattab and Zaharia 2020): the score of a text is
the mean over the query's tokens of the best cosine with a token of the text (MaxSim). All are compared as int8 first,
and the best once more with the query as float32.

`splade` keeps weights of words, those of the text and others that the model adds, as a sparse matrix by word; the score
is the sum over words of the weight in the query times that in the text (Formal, Piwowarski and Clinchant 2021).

Nothing of a text is in another's score, so one index serves every asker: labels are looked up where it is searched.
"""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from rag_lab._kit.machine import bytes_on_disk
from rag_lab.access import Labels, access_label
from rag_lab.errors import StoreError
from rag_lab.models.protocols import as_int8
from rag_lab.records import Chunk
from rag_lab.stores.engine import Found, batches

EncodedName = Literal["late", "splade"]
Scores = npt.NDArray[np.float32]

FORMAT = 2  # raised when the files of an index, or its scores, change
_VECTORS_AT_ONCE = 32_768
_QUERIES_AT_ONCE = 16
_DECIMALS = 6
_TOO_MANY = (
    "retrieval.mode late compares a question with every chunk, at most {most:,}, and this corpus has {n:,}; make "
    "chunks larger (corpus.chunk_size), or search otherwise and rerank by maxsim."
)


class EncodedIndex(ABC):
    """Encoded texts in a folder, each with its access label; `price` is what they took to encode, and take on disk."""

    method: ClassVar[str]  # of a model that can make one
    most: ClassVar[int | None] = None  # chunks, beyond which a search takes too long

    def __init__(self, path: Path, model: Any) -> None:
        self.path, self.model = path, model
        about = json.loads((path / "about.json").read_text(encoding="utf-8"))
        self._ids: list[str] = about["ids"]
        self.price = {"chunks": len(self._ids), "seconds": about["seconds"], "bytes": bytes_on_disk(path)}
        self._labels = np.array(about["labels"])

    @classmethod
    def write(cls, path: Path, model: Any, chunks: Sequence[Chunk]) -> None:
        """Write a new index of n >= 1 chunks, or refuse too many, into the folder `path`, which is made."""
        if cls.most is not None and len(chunks) > cls.most:
            raise StoreError(_TOO_MANY.format(n=len(chunks), most=cls.most))
        path.mkdir(parents=True)
        labels = [access_label(chunk.namespace, chunk.permissions) for chunk in chunks]
        encode, began = getattr(model, cls.method), time.monotonic() + getattr(model, "replayed_s", 0.0)
        texts = [chunk.text for chunk in chunks]
        cls._write(path, (encode("document", texts[part]) for part in batches(len(texts), 256)))
        seconds = time.monotonic() + getattr(model, "replayed_s", 0.0) - began  # as first computed
        about = {"ids": [chunk.chunk_id for chunk in chunks], "labels": labels, "seconds": seconds}
        (path / "about.json").write_text(json.dumps(about), encoding="utf-8")

    def find(self, texts: Sequence[str], allowed: Labels | None) -> Callable[[Sequence[int], int], Found]:
        """Return what finds, for some of the queries, the ids of the n best texts with these labels, and scores."""
        queries = getattr(self.model, self.method)("query", list(texts))
        scores = self._scores(queries)
        if allowed is not None:
            scores[:, ~np.isin(self._labels, sorted(allowed))] = -np.inf

        def best(rows: Sequence[int], n: int) -> Found:
            found: Found = ([], [])
            for row in rows:
                positions, values = self._best(queries[row], scores[row], n)
                found[0].append([self._ids[position] for position in positions])
                found[1].append([round(float(value), _DECIMALS) for value in values])
            return found

        return best

    def _best(self, query: Any, scores: Scores, n: int) -> tuple[npt.NDArray[np.intp], Scores]:
        """Return the positions of the n best of the (n_texts,) scores of a query, best first, and their scores."""
        positions = np.argsort(-scores, kind="stable")
        positions = positions[np.isfinite(scores[positions])][:n]
        return positions, scores[positions]

    @classmethod
    @abstractmethod
    def _write(cls, path: Path, encoded: Iterable[Any]) -> None:
        """Write what the model made of the texts, in batches."""

    @abstractmethod
    def _scores(self, queries: Any) -> Scores:
        """Return (n_queries, n) scores; -inf where a text is not found at all."""


class LateIndex(EncodedIndex):
    """The vectors of all tokens, on disk and mapped into memory."""

    method: ClassVar[str] = "token_vectors"
    most: ClassVar[int | None] = 40_000  # more take longer than a second on two cores

    def __init__(self, path: Path, model: Any) -> None:
        super().__init__(path, model)
        self._lengths = np.load(path / "lengths.npy", allow_pickle=False)  # of each vector's int8 numbers
        self._starts = np.load(path / "starts.npy", allow_pickle=False)  # the first vector of each text, and the end
        whole = np.memmap(path / "tokens.int8", np.int8, mode="r")
        self._whole = whole.reshape(len(self._lengths), -1)

    @classmethod
    def _write(cls, path: Path, encoded: Iterable[Any]) -> None:
        starts, lengths = [0], []
        with (path / "tokens.int8").open("wb") as file:
            for rows in (one for some in encoded for one in some):
                whole = as_int8(rows)[0]
                file.write(whole.tobytes())
                lengths.append(np.linalg.norm(whole.astype(np.float32), axis=1))
                starts.append(starts[-1] + len(whole))
        np.save(path / "lengths.npy", np.concatenate(lengths), allow_pickle=False)
        np.save(path / "starts.npy", np.array(starts), allow_pickle=False)

    def _scores(self, queries: Sequence[Scores]) -> Scores:
        """See `EncodedIndex`; numbers of queries and texts as int8."""
        import torch

        scores = np.empty((len(queries), len(self._ids)), np.float32)
        for group in batches(len(queries), _QUERIES_AT_ONCE):
            first = np.cumsum([0, *map(len, queries[group])])
            whole, scales = as_int8(np.concatenate(queries[group]))
            columns, start = torch.from_numpy(np.ascontiguousarray(whole.T)), 0
            while start < len(self._ids):
                end = int(np.searchsorted(self._starts, self._starts[start] + _VECTORS_AT_ONCE, side="right")) - 1
                end = max(end, start + 1)
                part = slice(self._starts[start], self._starts[end])
                products = torch._int_mm(torch.from_numpy(self._whole[part].copy()), columns).numpy().astype(np.float32)
                products /= self._lengths[part, None]
                best = np.maximum.reduceat(products, self._starts[start:end] - self._starts[start], axis=0) * scales.T
                scores[group, start:end] = (np.add.reduceat(best, first[:-1], axis=1) / np.diff(first)).T
                start = end
        return scores

    def _best(self, query: Scores, scores: Scores, n: int) -> tuple[npt.NDArray[np.intp], Scores]:
        """See `EncodedIndex`; more than n are scored again, with the query as float32."""
        near = np.sort(super()._best(query, scores, 2 * n + 16)[0])
        parts = [slice(self._starts[one], self._starts[one + 1]) for one in near]
        rows = [self._whole[part].astype(np.float32) / self._lengths[part, None] for part in parts]
        exact = np.array([(query @ one.T).max(axis=1).mean() for one in rows]).round(_DECIMALS)
        order = np.argsort(-exact, kind="stable")[:n]
        return near[order], exact[order]


class SpladeIndex(EncodedIndex):
    """The texts of each word, with its weights."""

    method: ClassVar[str] = "term_weights"

    def __init__(self, path: Path, model: Any) -> None:
        import scipy.sparse

        super().__init__(path, model)
        self._matrix = scipy.sparse.load_npz(path / "matrix.npz")  # (n_words, n)

    @classmethod
    def _write(cls, path: Path, encoded: Iterable[Any]) -> None:
        import scipy.sparse

        matrix = scipy.sparse.vstack(list(encoded)).T.tocsr()
        scipy.sparse.save_npz(path / "matrix.npz", matrix, compressed=False)

    def _scores(self, queries: Any) -> Scores:
        scores: Scores = (queries @ self._matrix).toarray()
        return np.where(scores > 0, scores, np.float32(-np.inf))


ENCODED: Mapping[EncodedName, type[EncodedIndex]] = {"late": LateIndex, "splade": SpladeIndex}
