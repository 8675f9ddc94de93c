"""From the configuration to the splitter."""

from __future__ import annotations

from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.split.markdown import MarkdownSections
from rag_lab.corpus.split.recursive import Recursive
from rag_lab.corpus.split.semantic import Semantic
from rag_lab.corpus.split.sentences import Sentences
from rag_lab.corpus.split.splitter import Splitter
from rag_lab.errors import ConfigError
from rag_lab.models.protocols import Embedder


def splitter_of(config: CorpusConfig, embedder: Embedder | None) -> Splitter:
    """Return the splitter that `config` names.

    Raises:
        ConfigError: if it is the semantic one, which alone needs `embedder`, and there is none.
    """
    if config.splitter == "sentences":
        return Sentences(config.chunk_words, config.overlap_words, config.min_pieces)
    if config.splitter == "markdown":
        return MarkdownSections(config.chunk_size, config.chunk_overlap)
    if config.splitter == "semantic":
        if embedder is None:
            raise ConfigError("The semantic splitter needs an embedding model; give one, or another corpus.splitter.")
        return Semantic(embedder, config.breakpoint_percentile, config.chunk_size, config.chunk_overlap)
    return Recursive(config.chunk_size, config.chunk_overlap)
