"""The pipeline: the one place that connects the stages, and the one place where their order is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rag_lab._kit import home as home_folder
from rag_lab.config import PipelineConfig
from rag_lab.corpus.index.corpus_index import CorpusIndex, open_index
from rag_lab.corpus.index.evidence import locate_all
from rag_lab.data.dataset import Dataset
from rag_lab.errors import ConfigError
from rag_lab.memory.results import Memory, Replayed
from rag_lab.models import shared as registry
from rag_lab.models.remembered_embeddings import RememberedEmbedder
from rag_lab.models.remembered_scores import RememberedScorer
from rag_lab.records import Problem, Question, Trace
from rag_lab.stages.answer.context import Assemble
from rag_lab.stages.answer.generate import Generate
from rag_lab.stages.answer.parse import Parse
from rag_lab.stages.query.hyde import Hyde
from rag_lab.stages.query.rephrase import Rephrase
from rag_lab.stages.query.rewrite import GuardedRewrite, OwnWords
from rag_lab.stages.query.route import RouteHyde
from rag_lab.stages.query.understand import LlmUnderstanding
from rag_lab.stages.readers import with_readers
from rag_lab.stages.rerank.keep_order import KeepOrder
from rag_lab.stages.rerank.pair_rerank import PairRerank
from rag_lab.stages.retrieval.merge import Merge
from rag_lab.stages.retrieval.retrieval_stages import hyde_search, prepare, searches, selection
from rag_lab.stages.run_stage import Progress, run_stage
from rag_lab.stages.stage import Stage
from rag_lab.stages.switched_off import Off

Read = Callable[[Question], Collection[str]]  # the trace fields of a question that metrics read


class Pipeline:
    """One variant of the pipeline on one corpus.

    Args:
        config: which stages, with which parameters and models.
        index: the corpus, split and embedded as `config` says.
        memory: where stage results are remembered; None computes everything anew.
        language: of the corpus, by which `retrieval.analyzer: auto` is decided.
    """

    def __init__(
        self,
        config: PipelineConfig,
        index: CorpusIndex,
        embedder: Any,
        memory: Memory | None = None,
        language: str = "",
    ) -> None:
        self.config = config.model_copy(update={"retrieval": config.retrieval.in_language(language)})
        self.index = index
        self.memory = memory
        self._embedder = embedder
        self._replayed = embedder.replayed if isinstance(embedder, RememberedEmbedder) else Replayed()

    @classmethod
    def build(
        cls, config: PipelineConfig, dataset: Dataset, *, home: Path | str | None = None, progress: bool = False
    ) -> Pipeline:
        """Connect the stages on the index of `dataset`, of which the parts that they search are built where missing.

        Models load when they are first needed.
        """
        folder = Path(home) if home else home_folder.usable_home()
        pipeline = cls._on(config, dataset, folder, progress=progress)
        prepare(pipeline.config, pipeline.index)
        return pipeline

    @classmethod
    def planned(cls, config: PipelineConfig, dataset: Dataset, *, home: Path | str | None = None) -> Pipeline:
        """Connect the stages as `build` does, to plan with: files are read and split if no model is asked, no more."""
        asks_none = config.corpus.pdf != "vision" and config.corpus.splitter != "semantic"
        return cls._on(config, dataset, Path(home or home_folder.home()), build=asks_none)

    @classmethod
    def _on(cls, config: PipelineConfig, dataset: Dataset, home: Path, **opening: bool) -> Pipeline:
        embedder = RememberedEmbedder(registry.embedder(config.models.embedding), home / "vectors.sqlite")
        vision = registry.chat_model(config.models.vision) if config.corpus.pdf == "vision" else None
        index = open_index(
            dataset.corpus_dir, config.corpus, embedder, home=home, store=config.store, vision=vision, **opening
        )
        return cls(config, index, embedder, Memory(home / "stages.sqlite"), dataset.language)

    @property
    def retrieval_stages(self) -> tuple[Stage, ...]:
        """From the question to the context."""
        config = self.config
        return (
            self._understand(),
            self._rewrite(),
            self._rephrase(),
            self._route(),
            self._hyde(),
            *searches(config, self.index, self._embedder),
            hyde_search(config, self.index, self._embedder),
            Merge(config.rerank.input_limit),
            self._rerank(),
            selection(config, self.index, self._embedder),
            self._assemble(),
        )

    @property
    def answer_stages(self) -> tuple[Stage, ...]:
        """From the context to the parsed answer; none where answers are switched off."""
        answer = self.config.answer
        if not answer.is_on:
            return ()
        model = registry.chat_model(self.config.models.generation, Generate.name)
        thinking_tokens = answer.thinking_tokens if answer.thinking else 0
        generate = Generate(model, answer.max_tokens, answer.temperature, thinking_tokens, self.config.seed)
        return (generate, Parse())

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages, in their order."""
        return (*self.retrieval_stages, *self.answer_stages)

    def steps(
        self, questions: Sequence[Question], answer: Collection[str] | None = None, read: Read | None = None
    ) -> Iterator[tuple[Stage, list[int]]]:
        """Yield each stage that runs, in order, with the places of the questions that it runs for; see `run`."""
        stages = self.stages

        @cache
        def names(fields: frozenset[str]) -> frozenset[str]:
            return frozenset(stage.name for stage in with_readers(stages, fields))

        needed = [names(_fields_read(question, answer, read)) for question in questions]
        for stage in stages:
            places = [place for place, some in enumerate(needed) if stage.name in some]
            if places:
                yield stage, places

    def run(
        self,
        questions: Sequence[Question],
        *,
        repeat: int = 0,
        answer: Collection[str] | None = None,
        read: Read | None = None,
        progress: Progress | None = None,
    ) -> list[Trace]:
        """Return one trace for each question, in order; its evidence is located in this index, as metrics need it.

        Args:
            questions: what is asked.
            repeat: number of this repetition; results of different repeats are never shared.
            answer: ids of the questions that are answered, all where None; the others end with their context.
            read: the trace fields that are read beside ranking and answer; a stage that sets nothing that is read, be
                it by a later stage, is not run. Where None, the context is read, too.
            progress: called after each batch with stage, traces done and traces to do.
        """
        located = self.locate(questions)[0]
        traces = [Trace(question, repeat) for question in located]
        for stage, places in self.steps(located, answer, read):
            done = run_stage(stage, [traces[place] for place in places], self.memory, progress, self._replayed)
            for place, trace in zip(places, done, strict=True):
                traces[place] = trace
        return traces

    def ask(self, text: str, may_see: tuple[str, ...] | None = None, namespace: str | None = None) -> Trace:
        """Answer one question, from what an asker with these permissions may see (None: everything).

        Raises:
            ConfigError: if the question is empty.
        """
        if not text.strip():
            raise ConfigError('The question is empty; ask something, as in: rag-lab ask "What does it weigh?"')
        return self.run([Question("asked", text.strip(), may_see=may_see, namespace=namespace)])[0]

    def locate(self, questions: Sequence[Question]) -> tuple[list[Question], list[Problem]]:
        """Return the questions with their evidence found in this index, as `run` asks them, and what is not found."""
        return locate_all(self.index, questions)

    def identities(self, of: Collection[str]) -> dict[str, Any]:
        """Return the identity, models included, of every stage named in `of` that is on."""
        on = (stage for stage in self.stages if stage.name in of and not isinstance(stage, Off))
        return {stage.name: dict(stage.identity()) for stage in on}

    def _understand(self) -> Stage:
        query = self.config.query
        if query.rewrite == "none" and query.hyde != "classified":
            return Off("understand")
        return LlmUnderstanding(
            registry.chat_model(self.config.models.understanding, LlmUnderstanding.name), self.config.seed
        )

    def _rewrite(self) -> Stage:
        if self.config.query.rewrite == "none":
            return OwnWords()
        return GuardedRewrite(self._embedder, self.config.query.min_similarity)

    def _rephrase(self) -> Stage:
        n = self.config.query.phrasings
        if n == 0:
            return Off("rephrase")
        return Rephrase(registry.chat_model(self.config.models.understanding, Rephrase.name), n, self.config.seed)

    def _route(self) -> Stage:
        query = self.config.query
        if query.hyde == "none":
            return Off("route")
        return RouteHyde(query.class_to_hyde if query.hyde == "classified" else None)

    def _hyde(self) -> Stage:
        query = self.config.query
        if query.hyde == "none":
            return Off("hyde")
        return Hyde(registry.chat_model(self.config.models.hyde, Hyde.name), query.hyde_max_tokens, self.config.seed)

    def _rerank(self) -> Stage:
        rerank, models = self.config.rerank, self.config.models
        keep = rerank.input_limit if self.config.select.is_on else 2 * rerank.final_k
        if rerank.name == "none":
            return KeepOrder(keep)
        if rerank.name == "cross_encoder":
            scorer = self._remembered(registry.cross_encoder(models.cross_encoder))
            return PairRerank("cross_encoder", scorer, self.index, keep, rerank.passage)
        scorer = self._remembered(registry.query_likelihood(models.likelihood))
        return PairRerank("query_likelihood", scorer, self.index, keep, rerank.passage, rerank.retrieval_weight)

    def _assemble(self) -> Stage:
        answer = self.config.answer
        counter = registry.chat_model(self.config.models.generation)
        return Assemble(self.index, counter, self.config.rerank.final_k, answer.context_tokens, answer.context_bytes)

    def _remembered(self, scorer: Any) -> Any:
        return scorer if self.memory is None else RememberedScorer(scorer, self.memory, self._replayed)


def _fields_read(question: Question, answer: Collection[str] | None, read: Read | None) -> frozenset[str]:
    """Return the trace fields that somebody reads; ranking and answer stand in every report."""
    is_answered = answer is None or question.question_id in answer
    others = {"passages"} if read is None else set(read(question))
    return frozenset(others - {"answer"} | {"ranked"} | ({"answer"} if is_answered else set()))
