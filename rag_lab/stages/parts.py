"""What stages are made of: the sections of a configuration, an index, a memory, and objects in place of modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.memory.results import Memory, Replayed
from rag_lab.models import shared
from rag_lab.models.config import ModelsConfig
from rag_lab.models.protocols import ChatModel, Embedder, PairScorer
from rag_lab.models.remembered_vectors import RememberedScorer
from rag_lab.stages.config import (
    AnswerConfig,
    ConversationConfig,
    QueryConfig,
    RerankConfig,
    RetrievalConfig,
    SelectConfig,
)
from rag_lab.stages.prompts.chat_template import ChatTemplate


@dataclass(frozen=True)
class Parts:
    """What the stages of one pipeline share.

    overrides: objects that replace configured modules, by slot.
    prompts: custom ones, by the key of the section that names them.
    retrieval: with the analyzer of the dataset's language, where that is declared and the configuration says `auto`.
    """

    models: ModelsConfig
    query: QueryConfig
    retrieval: RetrievalConfig
    rerank: RerankConfig
    select: SelectConfig
    answer: AnswerConfig
    seed: int
    index: CorpusIndex
    embedder: Embedder
    memory: Memory | None = None
    replayed: Replayed = field(default_factory=Replayed)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    prompts: Mapping[str, ChatTemplate] = field(default_factory=dict)
    conversation: ConversationConfig = field(default_factory=ConversationConfig)

    @property
    def selects(self) -> bool:
        """Whether something selects from what the reranker hands on."""
        return self.select.is_on or "select" in self.overrides

    def chat(self, role: str, purpose: str = "") -> ChatModel:
        """Return the chat model of a role of `models`; its calls are booked under `purpose`."""
        return shared.chat_model(self.model(role), purpose)

    def model(self, role: str) -> Any:
        """Return what a role of `models` names, or the object in its place."""
        return self.overrides.get(f"{role}_model", getattr(self.models, role))

    def scorer(self, role: Literal["cross_encoder", "likelihood"]) -> PairScorer:
        """Return the pair scorer of a role of `models`, with its scores remembered where there is a memory."""
        find = shared.cross_encoder if role == "cross_encoder" else shared.query_likelihood
        scorer = find(self.model(role))
        return scorer if self.memory is None else RememberedScorer(scorer, self.memory, self.replayed)
