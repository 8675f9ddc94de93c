"""One variant: its pipeline is asked, what it did is scored, and both are saved in a folder of a run."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

from rag_lab._kit import home, machine, observability
from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.digest import is_whole
from rag_lab.comparison.passages import passages_without_text
from rag_lab.config import PipelineConfig
from rag_lab.corpus.folder import visible_in
from rag_lab.data.dataset import other_corpora
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.evaluation.registry import AnyMetric, parse_name, reads_of
from rag_lab.memory.results import Dropped
from rag_lab.models import protocols, remembered_vectors, shared
from rag_lab.models.hosted import PEAKS_MB
from rag_lab.models.shared import chosen_models
from rag_lab.pipeline import Pipeline
from rag_lab.records import QUERY_CLASSES, Problem, Score, Trace
from rag_lab.runs import omissions, run_manifest, variant_files
from rag_lab.runs import run_folder as files
from rag_lab.stages import run_stage
from rag_lab.stages.retrieval.search import EncodedSearcher
from rag_lab.stages.stage import Outcome

if TYPE_CHECKING:
    import pandas as pd

_WRITE_EVERY_S = 0.3
_LOGGER = logging.getLogger(__name__)


class VariantProgress(AbstractContextManager["VariantProgress"]):
    """A callback for `Pipeline.run`. With a `folder` it writes what it knows there, and removes it at the end.

    The file is written where a step begins, and a few times a second within one. `show`, which takes a stage or step,
    and how many questions of how many have passed it, takes the place of file and bars.
    """

    def __init__(self, folder: Path | None, show: Callable[[str, int, int | None], None] | None = None) -> None:
        self.folder, self._show = folder, show
        self._bar: Any = None
        self._stage = ""
        self.live = variant_files.LiveVariant("starts", time.time())
        self._written = float("-inf")

    def __call__(self, stage: str, done: int = 0, total: int | None = None) -> None:
        """Show that `done` of `total` have passed `stage`; one without a total draws a bar of its own, if any."""
        if self._show is not None:
            self._show(stage, done, total)
        elif self.folder is not None:
            now = time.time()
            is_new = stage != self.live.stage
            if is_new:
                self.live = replace(self.live, stage=stage, stage_began=now, known=done)
            self.live = replace(self.live, done=done, total=total)
            if is_new or now - self._written >= _WRITE_EVERY_S:
                self._written = now
                files.write_json(self.folder / variant_files.LIVE_FILE, self.live)
        elif total is not None:
            if stage != self._stage:
                if self._bar is not None:
                    self._bar.close()
                self._bar, self._stage = tqdm(total=total, desc=stage, unit="question"), stage
            self._bar.update(done - self._bar.n)

    def saw(self, stage: str, outcomes: Collection[Outcome], origin: run_stage.Origin) -> None:
        """Count where results came from, and what failed or fell back."""
        failed = [one.reason for one in outcomes if one.status == "failed"]
        fell_back = [one.reason for one in outcomes if one.status == "fallback"]
        live = self.live
        self.live = replace(
            live,
            remembered=live.remembered + len(outcomes) * (origin == "remembered"),
            computed=live.computed + len(outcomes) * (origin == "computed"),
            failed=live.failed + len(failed),
            fell_back=live.fell_back + len(fell_back),
            reason=next((f"{stage}: {why}" for why in (failed or fell_back)[-1:]), live.reason),
        )

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()
        if self.folder is not None:
            (self.folder / variant_files.LIVE_FILE).unlink(missing_ok=True)


@dataclass
class VariantWork:
    """A pipeline at work. Call `run`, `score` and `save` in this order; what is saved is what ran."""

    pipeline: Pipeline
    questions: tuple[str, ...]
    answered: tuple[str, ...]
    metrics: tuple[AnyMetric, ...]
    judge: str | None = None
    judge_language: str = ""  # of the examples in the judge's prompts; RAGAs' own, English, where empty
    metric_embedding: str = ""  # the same for all variants of an experiment
    repeats: int = 1
    out: Path | None = None  # the folder that receives the results; None keeps them in memory
    progress: VariantProgress | None = None  # a bar for each stage, or a line in `out` for the sweep, where None
    traces: list[Trace] = field(default_factory=list, init=False)
    scores: list[Score] = field(default_factory=list, init=False)
    problems: tuple[Problem, ...] = field(default=(), init=False)
    not_indexed: dict[str, list[int]] = field(default_factory=dict, init=False)

    def run(self) -> list[Trace]:
        """Ask the questions and return one trace for each repeat and question, in this order."""
        chosen = set(self.questions)
        asked = [question for question in self.pipeline.dataset.questions if question.question_id in chosen]
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
        answered = set(self.answered) if self.pipeline.config.answer.is_on else set()
        from rag_lab.comparison.tables.evidence import unindexed

        read = reads_of(self.metrics, answered)
        observability.begin_inherited_logs()
        with self._shown as progress, observability.working(variant=self.name):
            progress("index")
            if progress.folder is not None:  # what reads the file sees how much is embedded
                self.pipeline = self.pipeline.watched(partial(progress, "index"))
            self.pipeline.prepare(asked)
            located, problems = self.pipeline.locate(asked)
            self.problems = (*self.pipeline.index.problems, *problems)
            self.not_indexed = unindexed(self.pipeline.index.chunks.places(), located)
            self.traces = [
                trace
                for repeat in range(self.repeats)
                for trace in self.pipeline.run(asked, repeat=repeat, answer=answered, read=read, progress=progress)
            ]
        return self.traces

    def score(self) -> pd.DataFrame:
        """Score the traces and return one row a (question, metric, repeat)."""
        from rag_lab.evaluation.evaluate import evaluate

        at_home, working = home.working_at(self.pipeline.home_override), observability.working
        with self._shown as progress, working(variant=self.name, stage="score"), observability.span("score"), at_home:
            progress("score")
            config = self.pipeline.config
            corpus_dir = self.pipeline.dataset.read_from(config.corpus.folder)
            embedder, vectors = shared.embedder(self.metric_embedding), self.pipeline.home / "vectors.sqlite"
            self.scores = evaluate(
                self.traces,
                self.metrics,
                judge=self._judge,
                embedder=remembered_vectors.RememberedEmbedder(embedder, vectors),
                memory=self.pipeline.home / "scores.sqlite",
                language=self.judge_language,
                visible=visible_in(corpus_dir, other_corpora(config.retrieval.also)),
                progress=self.out is None,
            )
        return variant_files.to_frame({self.name: self.scores})

    def save(self) -> Path | None:
        """Write config, traces, scores, passages and a record of what ran to `out`, each whole; return `out`."""
        if self.out is None:
            _LOGGER.info("OUT is empty: nothing is saved")
            return None
        without_text = {name: self.pipeline.index.text(hit) for name, hit in passages_without_text(self.traces).items()}
        (self.out / files.CONFIG_FILE).write_text(self.pipeline.config.to_yaml(), encoding="utf-8")
        variant_files.write_traces(self.out / files.TRACES_FILE, self.traces)
        variant_files.write_scores(self.out / files.SCORES_FILE, {self.name: self.scores})
        files.write_json(self.out / files.PASSAGES_FILE, without_text)
        files.write_json(self.out / files.RECORD_FILE, self.record())  # last: its peak of memory is that of all above
        observability.flush()
        return self.out

    @property
    def name(self) -> str:
        """The variant's id: the name of its folder."""
        return self.out.name if self.out else "variant"

    def record(self) -> dict[str, Any]:
        """Return what ran, as JSON values: configuration, models, prompts, counts, problems, peak memory."""
        pipeline, config, parts = self.pipeline, self.pipeline.config, self.pipeline.parts
        failed = Counter(trace.failure.stage for trace in self.traces if trace.failure)
        roles, prompts = config.models.model_dump().values(), config.prompts.model_dump()
        declared, embedder = pipeline.dataset.language, parts.embedder
        failover, hosted_mb = chosen_models([*roles, self.metric_embedding, self.judge or ""]), sum(PEAKS_MB.values())
        index_price = pipeline.index.price(with_vectors=config.searches_vectors)
        for searcher in (getattr(stage, "searcher", None) for stage in pipeline.stages):
            if isinstance(searcher, EncodedSearcher) and is_whole(searcher.folder()):
                index_price |= {key: (index_price[key] or 0) + n for key, n in searcher.opened().price.items()}
        embeds = any("embeddings" in parse_name(name).info.needs for name in self.metrics)
        embedded = truncation = None  # what was embedded for this variant, and for none before it
        if isinstance(embedder, remembered_vectors.RememberedEmbedder) and embedder.embedded.chars:
            embedded = embedder.embedded
        if pipeline.truncation is not None:
            model = pipeline.replaced.get("embedding_model", config.models.embedding)
            truncation = omissions.TruncationRecord.of(model, pipeline.truncation, self.traces, config.rerank.final_k)
        return {
            "replaced": pipeline.replaced,
            "config_identity": config.identity,
            "language": f"{declared} (declared)" if declared else f"{pipeline.language or 'unknown'} (detected)",
            "models": pipeline.identities({record.stage for trace in self.traces for record in trace.stages}),
            # with their texts: a file may be another tomorrow
            "prompts": {place: {"file": prompts[place], "text": own.text} for place, own in parts.prompts.items()},
            "judge": dict(self._judge.identity()) if self._judge else None,
            "judge_language": self.judge_language,
            "metric_embedding": dict(shared.embedder(self.metric_embedding).identity()) if embeds else None,
            **({run_manifest.FAILOVER_KEY: failover} if failover else {}),
            "traces": len(self.traces),
            "failed_stages": dict(failed),
            "failed_scores": sum(score.status == "failed" for score in self.scores),
            "curable": {
                "questions": sum(trace.curable or pipeline.index.is_retryable for trace in self.traces),
                "scores": sum(score.curable for score in self.scores),
            },
            "damaged_results": Dropped.n,
            "results": {"remembered": self._shown.live.remembered, "computed": self._shown.live.computed},
            "problems": [str(problem) for problem in self.problems],
            "not_indexed": self.not_indexed,
            "unread": asdict(truncation) if truncation else None,
            "embedded": {"model": config.models.embedding, **asdict(embedded)} if embedded else None,
            "index": index_price,
            "peak_memory_mb": machine.peak_memory_mb() + hosted_mb,
            "held_elsewhere_mb": hosted_mb,
        }

    @cached_property
    def _judge(self) -> protocols.ChatModel | None:
        return shared.chat_model(self.judge) if self.judge else None

    @cached_property
    def _shown(self) -> VariantProgress:
        return self.progress or VariantProgress(self.out)


CLASS_TO_HYDE = "CLASS2HYDE"
NAMES: dict[str, str] = read_shipped(Path(__file__).with_name("names.yaml"))  # that researchers know, and their keys


def to_parameters(config: PipelineConfig) -> dict[str, Any]:
    """Return the scalars by which a notebook takes `config`, in the order of `NAMES`."""
    flat = config.flat()
    values = {name: flat[key] for name, key in NAMES.items()}
    return values | {CLASS_TO_HYDE: ",".join(name for name, gets_it in values[CLASS_TO_HYDE].items() if gets_it)}


def from_parameters(base: PipelineConfig, values: Mapping[str, Any]) -> PipelineConfig:
    """Return `base` with `values` (researchers' names to scalars) put in; all that is wrong is named at once."""
    problems = [unknown_name("parameter", name, NAMES) for name in values if name not in NAMES]
    changes = {NAMES[name]: value for name, value in values.items() if name in NAMES and name != CLASS_TO_HYDE}
    if CLASS_TO_HYDE in values:
        classes = {part.strip() for part in str(values[CLASS_TO_HYDE]).split(",") if part.strip()}
        problems += [unknown_name("class in CLASS2HYDE", name, QUERY_CLASSES) for name in classes - set(QUERY_CLASSES)]
        changes[NAMES[CLASS_TO_HYDE]] = {name: name in classes for name in QUERY_CLASSES}
    try:
        config = base.override(changes)
    except ConfigError as error:
        complaints = str(error)  # about keys, with the researchers' names before them
        for name, key in NAMES.items():
            complaints = complaints.replace(f"{key}: ", f"{name} ({key}): ")
        problems.append(complaints)
    if problems:
        raise ConfigError("; ".join(problems))
    return config
