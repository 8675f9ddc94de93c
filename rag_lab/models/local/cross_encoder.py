"""Cross-encoders by sentence-transformers: read question and passage together and score their match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from rag_lab.errors import ModelError
from rag_lab.models.local.sentence_transformers import SentenceTransformersModel

_DECIMALS = 6  # the last digits of float32 depend on what shares a batch


class CrossEncoderScorer(SentenceTransformersModel):
    """Any cross-encoder with one output: `bge-reranker-v2-m3`, a folder, or a hub name. float32 on every device."""

    loads = "CrossEncoder"

    def __init__(self, name: str, *, device: str = "", batch_size: int = 16, max_tokens: int | None = None) -> None:
        super().__init__(name, device, batch_size)
        self.max_tokens = max_tokens

    def identity(self) -> Mapping[str, Any]:
        """Return provider, name, digest of the weights, input limit and library version."""
        return {**super().identity(), "max_tokens": self.max_tokens}

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return one score for each (question, passage), in order, rounded to six decimals.

        A pair's score alone and in a batch, on one processor and another, agree within the error of float32 and not
        to the last decimal: what is remembered, and what passages are ordered by, is the first one computed.

        Raises:
            ModelError: if the weights are missing or do not load, or the model gives more than one score a pair.
        """
        if not pairs:
            return []
        order = sorted(range(len(pairs)), key=lambda index: (sum(map(len, pairs[index])), pairs[index]))
        with self._lock:
            values = self._model.predict(
                [pairs[index] for index in order], batch_size=self.batch_size, show_progress_bar=False
            )
        scores = dict(zip(order, values, strict=True))
        return [round(float(scores[index]), _DECIMALS) for index in range(len(pairs))]

    def pair_tokens(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return how many tokens each pair has together; beyond `most_tokens` its longer text is cut at the end."""
        reads = self._read_length()
        return [0] * len(pairs) if reads is None else reads.of_pairs(pairs)

    @property
    def _given_limit(self) -> int | None:
        return self.max_tokens

    @cached_property
    def _model(self) -> Any:
        model = self._load(max_length=self.max_tokens)
        if model.num_labels != 1:
            raise ModelError(f"{self.name} gives {model.num_labels} scores a pair; choose a cross-encoder with one.")
        return model
