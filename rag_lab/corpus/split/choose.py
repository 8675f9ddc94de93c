"""From the configuration, or an object in memory, to the splitter."""

from __future__ import annotations

from typing import Any, cast

from rag_lab._kit.registry import Module, own
from rag_lab._kit.source_digest import source_digest
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.split.own_splitter import LANGCHAIN, OwnSplitter
from rag_lab.corpus.split.splitter import Splitter
from rag_lab.corpus.split.splitters import SPLITTERS
from rag_lab.models.protocols import Embedder


def splitter_of(config: CorpusConfig, embedder: Embedder | None, given: Any = None) -> Splitter:
    """Return the splitter that `config` names, or `given`: an object in its place.

    Raises:
        ConfigError: if there is no such splitter, it is none, or it is the semantic one, which alone needs `embedder`,
            and there is none.
    """
    if given is not None:
        return OwnSplitter(_module(given))
    found = SPLITTERS.find(config.splitter)
    if config.splitter in SPLITTERS.built_in:
        return cast(Splitter, found.made.of(config, embedder))
    return OwnSplitter(found)


def _module(given: Any) -> Module:
    if not isinstance(given, type) and hasattr(given, LANGCHAIN):
        return Module(type(given).__name__, given, source_digest(type(given)))
    return own(given, SPLITTERS)
