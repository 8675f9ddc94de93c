"""The pipeline: the one place that connects the stages, and the one place where their order is written."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Self

from rag_lab._kit.digest import digest
from rag_lab._kit.home import home as home_folder
from rag_lab._kit.home import usable_home, working_at
from rag_lab._kit.observability import span
from rag_lab.config import PipelineConfig, config_of
from rag_lab.corpus.corpus_index import CorpusIndex, locate_all, open_index
from rag_lab.data.dataset import Dataset, dataset_of, linked, other_corpora
from rag_lab.errors import ConfigError, RagLabError, unknown_name
from rag_lab.memory.results import Memory, Replayed
from rag_lab.models import shared
from rag_lab.models.config import ModelsConfig
from rag_lab.models.protocols import Embedder
from rag_lab.models.remembered_vectors import RememberedEmbedder, Watch
from rag_lab.models.truncation import TokenLength, TruncatedChildren
from rag_lab.records import Problem, Question, Trace
from rag_lab.rich_display import rich_display
from rag_lab.stages.agent.agents import agent_stage
from rag_lab.stages.context import context_stage
from rag_lab.stages.conversation import REMEMBER, conversation_stage
from rag_lab.stages.generate import Spoken, answer_stages
from rag_lab.stages.rerank import rerank_stage
from rag_lab.stages.retrieval.retrieval_stages import prepare, searches
from rag_lab.stages.retrieval.select import select_stage
from rag_lab.stages.rewrite_and_hyde import hyde_stages, rewrite_stages
from rag_lab.stages.run_stage import Progress, run_stage, with_readers
from rag_lab.stages.stage import Off, Parts, Stage
from rag_lab.stages.steps import STEPS
from rag_lab.stages.understand import understand_stages

Read = Callable[[Question], Collection[str]]  # the trace fields of a question that metrics read

# Where an object can stand in place of what the configuration names: stages, and models by their role.
STAGE_SLOTS = tuple(step.slot for step in STEPS if step.slot)
INDEX_SLOTS = ("splitter", "file_readers", "store", "embedding_model", "vision_model")  # what an index is made with
SLOTS = (*STAGE_SLOTS, *INDEX_SLOTS[:3], *(f"{role}_model" for role in ModelsConfig.model_fields))


@rich_display("rag_lab.notebook.views.pipeline_view:pipeline_view")
class Pipeline:
    """One variant of the pipeline on one corpus, as a value: `set` and `replace` return another.

    Nothing is read, built or loaded before it is needed.

    Args:
        documents: a data set's name, its folder, a folder of files, a `Dataset`, or LangChain's documents.
        config: which stages, with which parameters and models; where None, the data set's own (`pipeline.yaml`), or the
            defaults.
        questions: what is asked where `run` names nothing else; those of the data set where None.
        home: where indexes, results, converted weights and the rate limits of servers are kept; the workbench's folder
            where None.
        progress: show a bar while documents are embedded, or tell a callable how many texts are done, of how many.
    """

    def __init__(
        self,
        documents: Any,
        config: PipelineConfig | None = None,
        *,
        questions: Any = None,
        home: Path | str | None = None,
        progress: Watch = True,
    ) -> None:
        self.config = config or config_of(documents)
        self.overrides: Mapping[str, Any] = {}
        self.home_override = Path(home) if home else None
        self._documents, self._asked, self._progress = documents, questions, progress
        self._builds = self._asks = True
        self._on_index = False  # given open, without a dataset
        self._open: dict[str, tuple[CorpusIndex, Embedder]] = {}  # by what reads, splits and embeds

    @classmethod
    def planned(
        cls, config: PipelineConfig, dataset: Dataset, *, home: Path | str | None = None, beside: Self | None = None
    ) -> Self:
        """Return a pipeline to plan with: files are read and split if no model is asked, no more.

        Indexes that are open in the one `beside` it, of the same data set and home, are shared.
        """
        pipeline = cls(dataset, config, home=home or home_folder(), progress=False)
        corpus = config.corpus
        pipeline._asks, pipeline._builds = False, corpus.pdf != "vision" and corpus.splitter != "semantic"
        if corpus.cuts_by_tokens:  # only weights that are here can count
            pipeline._builds &= TokenLength(shared.embedder(config.models.embedding)).is_ready
        if beside is not None:
            pipeline._open = beside._open
        return pipeline

    @classmethod
    def on(cls, index: CorpusIndex, embedder: Embedder, config: PipelineConfig, memory: Memory | None = None) -> Self:
        """Return a pipeline on an index that is open already; without a memory everything is computed anew."""
        pipeline = cls(index.corpus_dir, config)
        pipeline._on_index = True
        pipeline.parts = pipeline._parts(index, embedder, memory, "")
        return pipeline

    def set(self, key: str | Mapping[str, Any], value: Any = None) -> Self:
        """Return this pipeline with a dotted key of its configuration changed, or several: {"rerank.name": "none"}."""
        return self._with(config=self.config.override({key: value} if isinstance(key, str) else key))

    def replace(self, **modules: Any) -> Self:
        """Return this pipeline with objects in place of what its configuration names: `replace(rerank=Shortest(4))`."""
        problems = [unknown_name("place of a pipeline", name, SLOTS) for name in modules if name not in SLOTS]
        if problems:
            raise ConfigError(" ".join(problems))
        return self._with(overrides={**self.overrides, **modules})

    def asking(self, questions: Any = None) -> Self:
        """Return this pipeline with other questions, as the argument of this name; with its own, read anew, where None.

        So labels that were written since are seen.
        """
        asked = self._asked if questions is None else questions
        return self._with(_asked=asked, dataset=dataset_of(self._documents, asked, self.home))

    def sharing(self, dataset: Dataset) -> Self:
        """Return this pipeline on a data set that was read already; the same documents, or its index is another."""
        return self._with(_documents=dataset, _asked=None, dataset=dataset)

    def after(self, sources: Collection[str]) -> Self:
        """Return this pipeline on the documents as of now, of which these files alone came, changed or went since.

        Nothing else is looked at, which of many files takes long; the questions stay those that were read.
        """
        return self._with(_open={}, parts=replace(self.parts, index=self.index.after(sources)))

    def watched(self, progress: Watch) -> Self:
        """Return this pipeline with something else to watch while documents are embedded; see `Pipeline`."""
        return self._with(_progress=progress)

    @property
    def replaced(self) -> dict[str, str]:
        """What stands in place of what the configuration names, by place and in words."""
        return {place: getattr(made, "__name__", repr(made)) for place, made in self.overrides.items()}

    @property
    def corpus_name(self) -> str:
        """What it reads, in words; nothing is opened to find out."""
        documents = self._documents
        if isinstance(documents, Dataset):
            return documents.name
        return str(documents) if isinstance(documents, str | Path) else f"{len(documents):,} documents"

    @cached_property
    def home(self) -> Path:
        """The folder below which indexes and results are kept."""
        return self.home_override or usable_home()

    @cached_property
    def dataset(self) -> Dataset:
        """The documents with their questions, if they have any."""
        return dataset_of(self._documents, self._asked, self.home)

    @property
    def index(self) -> CorpusIndex:
        """The corpus, split as the configuration says; read and split on first use."""
        return self.parts.index

    @property
    def memory(self) -> Memory | None:
        """Where results of stages are remembered."""
        return self.parts.memory

    @cached_property
    def parts(self) -> Parts:
        """What the stages are made of; models keep what they remember in the home of this pipeline."""
        config, home, overrides = self.config, self.home, self.overrides
        asked = config.corpus.chat_roles
        models = [config.models.embedding, *(getattr(config.models, role) for role in asked)]
        objects = [id(overrides.get(slot)) for slot in (*INDEX_SLOTS, *(f"{role}_model" for role in asked))]
        key = digest([config.corpus.model_dump(), config.store.model_dump(), config.retrieval.also, models, objects])
        with working_at(self.home_override):
            if key not in self._open:
                model = shared.embedder(overrides.get("embedding_model", config.models.embedding))
                embedder = RememberedEmbedder(model, home / "vectors.sqlite")
                named = {role: overrides.get(f"{role}_model", getattr(config.models, role)) for role in asked}
                chats = {role: shared.chat_model(model, "index") for role, model in named.items()}
                others = config.corpus.distractors_from if config.corpus.distractors else ""
                index = open_index(
                    self.dataset.read_from(config.corpus.folder),
                    config.corpus,
                    embedder,
                    home=home,
                    store=config.store,
                    custom_store=overrides.get("store"),
                    splitter=overrides.get("splitter"),
                    readers=overrides.get("file_readers", {}),
                    vision=chats.get("vision"),
                    writer=chats.get("understanding"),
                    asks=self._asks,
                    others=other_corpora(config.retrieval.also, others),
                    progress=self._progress,
                    build=self._builds,
                )
                self._open[key] = index, embedder
            return self._parts(*self._open[key], Memory(home / "stages.sqlite"), self.dataset.language)

    @property
    def language(self) -> str:
        """The language that `retrieval.analyzer: auto` goes by: what is declared, else what the texts are in."""
        return self.dataset.language or self.index.language()

    def prepare(self, questions: Sequence[Question] = ()) -> None:
        """Build what the searches read for these questions, where it is missing, so that none is charged with it."""
        with working_at(self.home_override):
            self._refuse_truncation()
            prepare(self.parts, self.stages, questions)
            self._refuse_truncation()  # a model that was downloaded for it says only now how much it reads

    def _refuse_truncation(self) -> None:
        if self.config.on_truncation == "refuse" and (truncation := self.truncation) and truncation.longer:
            model = self.replaced.get("embedding_model", self.config.models.embedding)
            what = truncation.total.text("the chunks", model)
            raise ConfigError(f"{what}, and on_truncation is refuse; make chunks smaller, or choose another model.")

    @property
    def truncation(self) -> TruncatedChildren | None:
        """What the embedding model never reads of the chunks; None where no search asks it, or it does not say."""
        with working_at(self.home_override):
            return self.index.truncation if self.config.searches_vectors else None

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """All stages, in their order; made once, as a custom module remembers that it was tried."""
        with working_at(self.home_override):
            parts = self.parts
            understand, rephrase = understand_stages(parts)
            searching, ranking = searches(parts), (rerank_stage(parts), select_stage(parts))
            answering = answer_stages(parts)
            if parts.answer.agent != "none":
                answering = (agent_stage(parts, (*searching, *ranking), answering),)
            return (
                conversation_stage(parts),
                understand,
                *rewrite_stages(parts),
                rephrase,
                *hyde_stages(parts),
                *searching,
                *ranking,
                context_stage(parts),
                *answering,
            )

    def steps(
        self, questions: Sequence[Question], answer: Collection[str] | None = None, read: Read | None = None
    ) -> Iterator[tuple[Stage, list[int]]]:
        """Yield each stage that runs, in order, with the places of the questions that it runs for; see `run`."""
        stages = self.stages

        names = cache(lambda fields: {stage.name for stage in with_readers(stages, fields)})
        needed = []
        for question in questions:  # ranking and answer stand in every report
            fields = {"passages"} if read is None else set(read(question)) - {"answer"}
            is_answered = answer is None or question.question_id in answer
            needed.append(names(frozenset(fields | {"ranked"} | ({"answer"} if is_answered else set()))))
        for stage in stages:
            places = [place for place, some in enumerate(needed) if stage.name in some]
            if stage.name == REMEMBER:  # there is nothing to remember before the first question
                places = [place for place in places if questions[place].history]
            if places:
                yield stage, places

    def run(
        self,
        questions: Sequence[Question] | None = None,
        *,
        repeat: int = 0,
        answer: Collection[str] | None = None,
        read: Read | None = None,
        progress: Progress | None = None,
        on_text: Callable[[str], object] | None = None,
    ) -> list[Trace]:
        """Return one trace for each question, in order; its evidence is located in this index, as metrics need it.

        Args:
            questions: what is asked; all of the data set where None.
            repeat: number of this repetition; results of different repeats are never shared.
            answer: ids of the questions that are answered, all where None; the others end with their context.
            read: the trace fields that are read beside ranking and answer; a stage that sets nothing that is read, be
                it by a later stage, is not run. Where None, the context is read, too, and the texts of all hits are
                kept on the trace, which shows them.
            progress: called when a stage begins and after each batch with stage, traces done and traces to do.
            on_text: called with the pieces of the answer to the one question that is asked: as they are written where
                the model can stream, else, and where it is remembered, at once.
        """
        asked = self.dataset.questions if questions is None else questions
        refuses = self.config.on_truncation == "refuse"
        with working_at(self.home_override):
            self.prepare(asked)
            located = self.locate(asked)[0]
            traces, spoken = [Trace(question, repeat) for question in located], Spoken(on_text)
            steps = list(self.steps(located, answer, read))
            # What is quick is remembered only for the dry runs of what costs more and reads it.
            costs = [stage.costly and not getattr(stage, "is_quick", False) for stage, _ in steps]
            for number, (stage, places) in enumerate(steps):
                memory = self.memory if any(costs[number:]) else None
                some = [traces[place] for place in places]
                if "ranked" in stage.writes:  # what the stage selects replaces the reranker's order, which is kept
                    some = [replace(trace, reranked=trace.ranked) if trace.ranked else trace for trace in some]
                with spoken.during(stage):
                    done = run_stage(stage, some, memory, progress, self.parts.replayed, refuses=refuses)
                for place, trace in zip(places, done, strict=True):
                    traces[place] = trace
            traces = linked(traces, self.dataset.base_url, self.config.retrieval.also)
            if traces and traces[0].answer:
                spoken.end(traces[0].answer.text)
            if read:
                return traces
            hits = [chain(one.base_hits, one.candidates, one.ranked, *one.hits.values()) for one in traces]
            texts = ({hit.span: self.index.text(hit) for hit in some} for some in hits)
            return [replace(trace, texts=some) for trace, some in zip(traces, texts, strict=True)]

    def ask(self, text: str, may_see: tuple[str, ...] | None = None, namespace: str | None = None) -> Trace:
        """Answer one question, from what an asker with these permissions may see (None: everything).

        One that the dataset asks in the same words has its labels, so that its trace shows the evidence and can be
        scored; not so where the asker may not see everything, since a label may tell what is hidden.
        """
        if not text.strip():
            raise ConfigError('The question is empty; ask something, as in: rag-lab ask "What does it weigh?"')
        is_limited = may_see is not None or namespace is not None
        plain = Question("asked", text.strip(), may_see=may_see, namespace=namespace)
        with span("ask"):
            if is_limited or self._on_index:
                return self.run([plain])[0]
            same = (one for one in self.dataset.questions if one.text == plain.text and not one.history)
            return self.run([replace(next(same, plain), may_see=None, namespace=None)])[0]

    def as_retriever(self, may_see: tuple[str, ...] | None = None, namespace: str | None = None) -> Any:
        """Return a `BaseRetriever` of LangChain's: what is ranked, with ids, scores and the trace in the metadata."""
        from langchain_core.documents import Document
        from langchain_core.retrievers import BaseRetriever

        pipeline = self

        class PipelineRetriever(BaseRetriever):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                question = Question("asked", query, may_see=may_see, namespace=namespace)
                with span("retrieve"):
                    (trace,) = pipeline.run([question], answer=(), read=lambda _: ())
                if trace.failure:
                    raise RagLabError(f"The stage {trace.failure.stage} failed: {trace.failure.reason}")
                found = []
                for hit in trace.ranked:
                    names = ("chunk_id", "parent_id", "source", "page", "score")
                    metadata = {name: getattr(hit, name) for name in names}
                    metadata |= {"scores": dict(hit.scores), "trace": trace}
                    found.append(Document(page_content=pipeline.index.text(hit), metadata=metadata))
                return found

        return PipelineRetriever()

    def as_runnable(self, may_see: tuple[str, ...] | None = None, namespace: str | None = None) -> Any:
        """Return a `Runnable` of LangChain's: a question, or one with its history, becomes answer, citations, trace."""
        from rag_lab.stages.pipeline_runnable import PipelineRunnable

        def run(question: Question, progress: Progress | None, on_text: Callable[[str], object] | None) -> Trace:
            with span("ask"):
                return self.run([question], progress=progress, on_text=on_text)[0]

        return PipelineRunnable(run, Question("asked", "", may_see=may_see, namespace=namespace))

    def locate(self, questions: Sequence[Question]) -> tuple[list[Question], list[Problem]]:
        """Return the questions with their evidence found in this index, as `run` asks them, and what is not found."""
        return locate_all(self.index, questions)

    def identities(self, of: Collection[str]) -> dict[str, Any]:
        """Return the identity, models included, of every stage named in `of` that is on."""
        on = (stage for stage in self.stages if stage.name in of and not isinstance(stage, Off))
        return {stage.name: dict(stage.identity()) for stage in on}

    def __repr__(self) -> str:
        objects = (f"{place}={what}" for place, what in self.replaced.items())
        return f"Pipeline({', '.join([repr(self.corpus_name), repr(self.config), *objects])})"

    def _with(self, **changes: Any) -> Self:
        """Return a copy with these attributes; indexes that are open are shared."""
        other = copy(self)
        for made in ("parts", "stages"):
            vars(other).pop(made, None)
        vars(other).update(changes)
        return other

    def _parts(self, index: CorpusIndex, embedder: Embedder, memory: Memory | None, language: str) -> Parts:
        config = self.config
        return Parts(
            models=config.models,
            query=config.query,
            retrieval=config.retrieval.in_language(language),
            rerank=config.rerank,
            select=config.select,
            answer=config.answer,
            seed=config.seed,
            index=index,
            embedder=embedder,
            memory=memory,
            replayed=embedder.replayed if isinstance(embedder, RememberedEmbedder) else Replayed(),
            overrides=self.overrides,
            prompts=config.prompts.custom(),
            conversation=config.conversation,
            agent=config.agent,
        )
