"""Sentences: as many as fit a number of words (`sentences`), or as long as they stay on their subject (`semantic`).

The latter is Kamradt's "semantic chunking" (2023), as in LangChain's `SemanticChunker`: each sentence is embedded with
its neighbours, and the text is cut where the cosine distance to the next is above a percentile of all distances.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Self

import numpy as np

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.spans import Span, row_spans, sentence_units, trimmed, words
from rag_lab.corpus.split.recursive import split_spans
from rag_lab.errors import ConfigError
from rag_lab.models.protocols import Embedder


@dataclass(frozen=True)
class Sentences:
    """Pieces of whole sentences.

    A text of fewer than `whole_below` words is one piece. A sentence of more than `max_words` is cut between words. A
    text whose sentences make fewer than `min_pieces` is cut between words throughout, into pieces of `max_words` with
    `overlap_words`: n words without table rows make max(1, ceil((n - overlap_words) / (max_words - overlap_words))).
    """

    max_words: int
    overlap_words: int
    min_pieces: int
    whole_below: int = 0

    @classmethod
    def of(cls, config: CorpusConfig, embedder: object) -> Self:
        """Return what `config` asks for."""
        return cls(config.chunk_words, config.overlap_words, config.min_pieces, config.whole_below)

    def identity(self) -> Mapping[str, Any]:
        """The four numbers."""
        return {
            "name": "sentences",
            "version": 2,
            "max_words": self.max_words,
            "overlap_words": self.overlap_words,
            "min_pieces": self.min_pieces,
            "whole_below": self.whole_below,
        }

    def split(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the spans of the pieces; see `Splitter`."""
        found = []
        for text in texts:
            counted = _Words(text)
            if len(counted.spans) < self.whole_below:
                pieces = trimmed(text, [(0, len(text))])
            else:
                pieces = self._packed(_units(text, counted, self.max_words), counted)
                if len(pieces) < self.min_pieces:
                    pieces = self._packed(_units(text, counted, 0), counted)
            found.append(pieces)
        return found

    def _packed(self, units: Sequence[Span], counted: _Words) -> list[Span]:
        """Put units together, as many as fit; a unit that does not fit stands alone."""
        lengths = [counted.between(*unit) for unit in units]
        pieces: list[Span] = []
        first = 0
        while first < len(units):
            last, total = first + 1, lengths[first]
            while last < len(units) and total + lengths[last] <= self.max_words:
                total += lengths[last]
                last += 1
            pieces.append((units[first][0], units[last - 1][1]))
            if last == len(units):
                break
            # The next piece begins so that it repeats some words and still holds unit `last`.
            start, shared = last, 0
            room = min(self.overlap_words, self.max_words - lengths[last])
            while start - 1 > first and shared + lengths[start - 1] <= room:
                start -= 1
                shared += lengths[start]
            first = start
        return pieces


class _Words:
    """The words of a text, counted between any two places."""

    def __init__(self, text: str) -> None:
        self.spans = words(text)
        self._starts = [start for start, _ in self.spans]

    def between(self, start: int, end: int) -> int:
        """Return how many words begin in text[start:end]."""
        return bisect_left(self._starts, end) - bisect_left(self._starts, start)

    def inside(self, start: int, end: int) -> list[Span]:
        """Return the words of text[start:end]; of one that reaches over an end, the part that lies within."""
        first = bisect_left(self._starts, start)
        if first and self.spans[first - 1][1] > start:
            first -= 1
        found = self.spans[first : bisect_left(self._starts, end)]
        return [(max(begin, start), min(finish, end)) for begin, finish in found]


def _units(text: str, counted: _Words, most: int) -> list[Span]:
    """Return sentences and rows, with the words of a sentence in its place where it has more than `most`."""
    rows = set(row_spans(text))
    units: list[Span] = []
    for unit in sentence_units(text):
        is_long = unit not in rows and counted.between(*unit) > most
        units += counted.inside(*unit) if is_long else [unit]
    return units


@dataclass(frozen=True)
class Semantic:
    """Runs of sentences between breakpoints, distances above `percentile`; a longer run is cut by characters."""

    embedder: Embedder
    percentile: float
    size: int
    overlap: int

    @classmethod
    def of(cls, config: CorpusConfig, embedder: Embedder | None) -> Self:
        """Return what `config` asks for."""
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
        windows = [  # each sentence with the one before and the one after
            text[spans[max(0, n - 1)][0] : spans[min(len(spans) - 1, n + 1)][1]]
            for text, spans in zip(texts, units, strict=True)
            for n in range(len(spans))
        ]
        vectors = self.embedder.embed_documents(windows) if windows else np.zeros((0, 0), np.float32)
        bounds = pairwise(accumulate((len(spans) for spans in units), initial=0))
        found = []
        for text, spans, (start, end) in zip(texts, units, bounds, strict=True):
            breaks = [0, len(spans)] if spans else []  # the sentences at which a run begins, and their number
            if len(spans) > 1:
                distances = 1 - np.einsum("ij,ij->i", vectors[start : end - 1], vectors[start + 1 : end])
                far = np.flatnonzero(distances > np.percentile(distances, self.percentile))
                breaks[1:1] = [int(number) + 1 for number in far]
            runs = [(spans[first][0], spans[last - 1][1]) for first, last in pairwise(breaks)]
            found.append(split_spans(text, runs, self.size, self.overlap))
        return found
