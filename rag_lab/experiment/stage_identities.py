"""What the stages of a configuration are made of, without documents, weights or an index.

Each stage has the identity that its results are remembered under. So two configurations with the same stages have the
same results, and a model that stands in no stage's identity is not used. Nobody writes by hand which key is read when.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from rag_lab.config import PipelineConfig, module_kinds
from rag_lab.corpus.files.reading import Reading
from rag_lab.corpus.index.build import Recipe
from rag_lab.corpus.split.splitter import splitter_of
from rag_lab.errors import RagLabError
from rag_lab.models.protocols import ChatModel, Embedder, PairScorer
from rag_lab.pipeline import Pipeline
from rag_lab.records import Question
from rag_lab.stages.conversation import REMEMBER
from rag_lab.stages.parts import Parts
from rag_lab.stages.run_stage import with_readers
from rag_lab.stages.stage import Off
from rag_lab.stores import registry
from rag_lab.stores.analyzer import analyzer_for

_NOWHERE = Path("/nowhere")  # nothing is read or written there


@dataclass(frozen=True, slots=True)
class Readers:
    """What is read of the pipelines of an experiment.

    answers: whether any question is answered, where a pipeline answers.
    contexts: whether a metric reads the context of questions that are not answered.
    language: of the dataset; "" where none is declared.
    turns: whether any question has turns of a conversation before it.
    """

    answers: bool = True
    contexts: bool = True
    language: str = ""
    turns: bool = True


def stage_identities(config: PipelineConfig, readers: Readers) -> dict[str, Mapping[str, Any]]:
    """Return the identity of each stage that is on and whose result somebody reads, by its name.

    Raises:
        RagLabError: if a module, a store or a prompt that the configuration names cannot be used.
    """
    embedder = cast(Embedder, _Model("embedding", config.models.embedding))
    index: Any = _Index(config, embedder, readers.language)
    pipeline = Pipeline.on(index, embedder, config)
    parts = {**vars(pipeline.parts), "retrieval": config.retrieval.in_language(readers.language)}
    pipeline.parts = _Parts(**parts)
    read = {"ranked", *(["answer"] if readers.answers else []), *(["passages"] if readers.contexts else [])}
    on = [stage for stage in with_readers(pipeline.stages, read) if not isinstance(stage, Off)]
    return {stage.name: stage.identity() for stage in on if readers.turns or stage.name != REMEMBER}


def roles_used(config: PipelineConfig, readers: Readers) -> set[str]:
    """Return the keys of `models` that the stages use; what cannot be used here is taken for what is built in."""
    try:
        found = stage_identities(config, readers)
    except RagLabError:
        defaults, now = PipelineConfig().flat(), config.flat()
        texts = {key: [*value.values()] if isinstance(value, Mapping) else [value] for key, value in now.items()}
        bad = [key for key, kind in module_kinds().items() if any(map(kind.problem, texts[key]))]
        usable = config.override({key: defaults[key] for key in (*bad, "store.name", "store.url")})
        found = stage_identities(usable, readers)
    return {model["role"] for model in models_in(found)}


def n_chats(config: PipelineConfig) -> int:
    """Return how many stages ask a chat model for each question."""
    try:
        found = stage_identities(config, Readers(contexts=False))
    except RagLabError:
        return 0
    return sum("model" in identity for identity in found.values())


def models_in(value: Any) -> Iterator[Mapping[str, str]]:
    """Yield the role and the name of every model in identities."""
    if isinstance(value, Mapping):
        if value.keys() == {"role", "model"}:
            yield value
        for inner in value.values():
            yield from models_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from models_in(inner)


@dataclass(frozen=True)
class _Model:
    """A model by its role and its name."""

    role: str
    model: str

    def identity(self) -> Mapping[str, str]:
        return {"role": self.role, "model": self.model}


@dataclass(frozen=True)
class _Parts(Parts):
    """Parts whose models are names."""

    def chat(self, role: str, purpose: str = "") -> ChatModel:
        return cast(ChatModel, _Model(role, self.model(role)))

    def scorer(self, role: Literal["cross_encoder", "likelihood"]) -> PairScorer:
        return cast(PairScorer, _Model(role, self.model(role)))


class _Index:
    """An index that says what it would be made of."""

    corpus_dir = _NOWHERE
    labels: Collection[str] = frozenset()
    unread = None

    def __init__(self, config: PipelineConfig, embedder: Embedder, language: str) -> None:
        corpus = config.corpus
        vision = cast(ChatModel, _Model("vision", config.models.vision)) if corpus.pdf == "vision" else None
        reading = Reading(corpus, vision, _NOWHERE)
        self.language = language
        self.digest = Recipe(corpus, reading, splitter_of(corpus, embedder)).identity()
        self.vectors_identity = {"embedder": embedder.identity(), "store": registry.identity(config.store)}

    def analyzer(self, choice: Any) -> str:
        return analyzer_for(choice, self.language) if self.language else choice

    def is_visible(self, source: str, question: Question) -> bool:
        return True
