"""Sentences as long as they stay on their subject: cuts where neighbouring sentences' embeddings are far apart.

The method is Kamradt's "semantic chunking" (2023), as in LangChain's `SemanticChunker`: each sentence is embedded with
its neighbours, and the text is cut where the cosine distance to the next is above a percentile of all distances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Self

import numpy as np

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.sentence_units import sentence_units
from rag_lab.corpus.spans import Span
from rag_lab.corpus.split.recursive import split_spans
from rag_lab.errors import ConfigError
from rag_lab.models.protocols import Embedder, Vectors


@dataclass(frozen=True)
class Semantic:
    """Runs of sentences between breakpoints; a run longer than `size` characters is cut by characters.

    Args:
        embedder: embeds sentences as it embeds documents.
        percentile: of a text's distances, above which a distance is a breakpoint.
        size: of a piece, in characters.
        overlap: of the pieces that a long run is cut into, in characters.
    """

    embedder: Embedder
    percentile: float
    size: int
    overlap: int

    @classmethod
    def of(cls, config: CorpusConfig, embedder: Embedder | None) -> Self:
        """Return what `config` asks for.

        Raises:
            ConfigError: without an embedder.
        """
        if embedder is None:
            raise ConfigError("The semantic splitter needs an embedding model; give one, or another corpus.splitter.")
        return cls(embedder, config.breakpoint_percentile, config.chunk_size, config.chunk_overlap)

    def identity(self) -> Mapping[str, Any]:
        """The embedding model and the three numbers."""
        return {
            "name": "semantic",
            "version": 1,
            "embedder": dict(self.embedder.identity()),
            "percentile": self.percentile,
            "size": self.size,
            "overlap": self.overlap,
        }

    def split(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the spans of the pieces; see `Splitter`. The sentences of all texts are embedded in one call."""
        units = [sentence_units(text) for text in texts]
        windows = [window for text, spans in zip(texts, units, strict=True) for window in _windows(text, spans)]
        vectors = self.embedder.embed_documents(windows) if windows else np.zeros((0, 0), np.float32)
        bounds = pairwise(accumulate((len(spans) for spans in units), initial=0))
        return [
            self._split(text, spans, vectors[start:end])
            for text, spans, (start, end) in zip(texts, units, bounds, strict=True)
        ]

    def _split(self, text: str, units: Sequence[Span], vectors: Vectors) -> list[Span]:
        runs = [(units[first][0], units[last - 1][1]) for first, last in pairwise(self._breaks(vectors))]
        return split_spans(text, runs, self.size, self.overlap)

    def _breaks(self, vectors: Vectors) -> list[int]:
        """Return the numbers of the sentences at which a run begins, and their number."""
        if len(vectors) < 2:
            return [0, len(vectors)] if len(vectors) else []
        distances = 1 - np.einsum("ij,ij->i", vectors[:-1], vectors[1:])
        far = np.flatnonzero(distances > np.percentile(distances, self.percentile))
        return [0, *(int(number) + 1 for number in far), len(vectors)]


def _windows(text: str, units: Sequence[Span]) -> list[str]:
    """Return each sentence with the one before and the one after."""
    last = len(units) - 1
    return [text[units[max(0, n - 1)][0] : units[min(last, n + 1)][1]] for n in range(len(units))]
