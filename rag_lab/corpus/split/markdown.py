"""Markdown: a piece never runs over a heading; sections longer than the size are cut by characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.headings import headings
from rag_lab.corpus.spans import Span
from rag_lab.corpus.split.recursive import split_spans


@dataclass(frozen=True)
class MarkdownSections:
    """Sections first, then pieces of at most `size` characters that share at most `overlap`."""

    size: int
    overlap: int

    @classmethod
    def of(cls, config: CorpusConfig, embedder: object) -> Self:
        """Return what `config` asks for."""
        return cls(config.chunk_size, config.chunk_overlap)

    def identity(self) -> Mapping[str, Any]:
        """The two lengths."""
        return {"name": "markdown", "version": 2, "size": self.size, "overlap": self.overlap}

    def split(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the spans of the pieces; see `Splitter`."""
        return [split_spans(text, section_spans(text), self.size, self.overlap) for text in texts]


def section_spans(text: str) -> list[Span]:
    """Return the spans of what stands before the first heading and of each section, which together are the text.

    Headings that follow each other with nothing between them belong to one section.
    """
    found = headings(text)
    bare = {after.start for before, after in pairwise(found) if not text[before.end : after.start].strip()}
    opening = [heading.start for heading in found if heading.start not in bare]
    return [(start, end) for start, end in pairwise([0, *opening, len(text)]) if start < end]
