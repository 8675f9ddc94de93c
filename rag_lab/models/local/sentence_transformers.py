"""Models of sentence-transformers, and its embeddings: the packaged `minilm`, a folder, `bge-m3`, or any hub name."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from rag_lab.errors import ModelError
from rag_lab.models.limits.read_limit import Kind
from rag_lab.models.local.quiet import without_progress_bars
from rag_lab.models.local.read_length import ReadLength, read_length
from rag_lab.models.protocols import Vectors
from rag_lab.models.requirements import library, require_package
from rag_lab.models.unit_vectors import unit_vectors
from rag_lab.models.weights import find, loading_error


class SentenceTransformersModel:
    """What its embedders and its cross-encoders have in common; they load as the library's class `loads`."""

    loads: ClassVar[str]

    def __init__(self, name: str, device: str, batch_size: int) -> None:
        self.name = name
        self.device = device
        self.batch_size = batch_size
        self._lock = threading.Lock()
        self._reads: ReadLength | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def weights_held(self) -> str:
        """The weights, what they load as, and all that they are loaded with."""
        return f"{self.loads} {self.name} {self.device} {self.batch_size} {self._given_limit}"

    @property
    def runs_on(self) -> str:
        """The device that was asked for."""
        return self.device

    def load(self) -> None:
        """Load the weights now; see `HoldsWeights`."""
        self._model  # noqa: B018 - it is loaded when it is first read

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, digest of the weights, and library version."""
        source = find(self.name)
        return {
            "provider": "sentence_transformers",
            "name": source.name,
            "weights": source.digest(),
            "library": library("sentence-transformers"),
        }

    @property
    def most_tokens(self) -> int | None:
        """The most tokens that it reads, the marks around included; None before its weights are here."""
        reads = self._read_length()
        return None if reads is None else reads.limit

    def _read_length(self) -> ReadLength | None:
        """Return what its files say; asked again until they are here."""
        if self._reads is None:
            with suppress(ModelError):  # which is told where the model is used
                self._reads = read_length(find(self.name), self._given_limit)
        return self._reads

    @property
    def _given_limit(self) -> int | None:
        """A limit that somebody set in place of the model's own."""
        return None

    @cached_property
    def _model(self) -> Any:
        return self._load()

    def _load(self, **options: Any) -> Any:
        loaded = require_package("sentence_transformers", "sentence-transformers")
        source = find(self.name)
        pin = source.pin()
        try:
            with without_progress_bars():
                return getattr(loaded, self.loads)(source.location, device=self.device or None, **pin, **options)
        except Exception as error:
            raise loading_error(source, error) from error


class SentenceTransformerEmbedder(SentenceTransformersModel):
    """Unit vectors in float32. `encode` sorts by length, so batches hold texts that need little padding."""

    loads = "SentenceTransformer"

    def __init__(self, name: str, *, device: str = "", batch_size: int = 32) -> None:
        super().__init__(name, device, batch_size)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of passages, in order, with the model's own prompt for documents.

        Raises:
            ModelError: if the weights are missing or do not load.
        """
        return self._encode("encode_document", texts)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return (n_texts, dim) unit vectors of questions, with the model's own prompt; see `embed_documents`."""
        return self._encode("encode_query", texts)

    def text_tokens(self, texts: Sequence[str], kind: Kind) -> list[int]:
        """Return how many tokens each text has for the model, with its own prompt; the weights are not loaded."""
        reads = self._read_length()
        return [0] * len(texts) if reads is None else reads.of_texts(texts, kind)

    def _encode(self, method: str, texts: Sequence[str]) -> Vectors:
        with self._lock:
            if not texts:
                return np.zeros((0, self._model.get_embedding_dimension() or 0), dtype=np.float32)
            rows = getattr(self._model, method)(
                list(texts), batch_size=self.batch_size, show_progress_bar=False, convert_to_numpy=True
            )
        return unit_vectors(np.asarray(rows, dtype=np.float32))
