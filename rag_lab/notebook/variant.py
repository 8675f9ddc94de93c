"""One variant, as the notebook `02_run_variant` runs it: parameters in, traces and scores out."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_lab._kit.home import home
from rag_lab.comparison.passage_table import excerpt
from rag_lab.config import PipelineConfig
from rag_lab.data.dataset import Dataset
from rag_lab.data.sample import stratified
from rag_lab.errors import ConfigError
from rag_lab.evaluation.foreseen import reads_of
from rag_lab.evaluation.registry import parse_name, split_names
from rag_lab.evaluation.registry import problems as metric_problems
from rag_lab.experiment.config import MAX_REPEATS
from rag_lab.experiment.run.notebook_parameters import from_parameters, parameters_in, to_parameters
from rag_lab.memory.checked_rows import Dropped
from rag_lab.models import shared as registry
from rag_lab.notebook.given_parameters import given
from rag_lab.notebook.peak_memory import peak_memory_mb
from rag_lab.notebook.progress import NotebookProgress
from rag_lab.notebook.summary import summary_table
from rag_lab.pipeline import Pipeline
from rag_lab.records import Problem, Score, Trace
from rag_lab.runs.run_folder import (
    CONFIG_FILE,
    EXCERPTS_FILE,
    LIVE_FILE,
    RECORD_FILE,
    SCORES_FILE,
    TRACES_FILE,
    RunFolder,
    write_json,
)
from rag_lab.runs.trace_file import write_traces

if TYPE_CHECKING:
    import pandas as pd

_LOGGER = logging.getLogger(__name__)
PARAMETERS: dict[str, type] = {
    **{"DATASET": str, "CONFIG": str, "QUESTIONS": str, "METRICS": str, "METRIC_EMBEDDING": str},
    **{"JUDGE": str, "JUDGE_LANGUAGE": str, "REPEATS": int, "OUT": str},
    **{name: type(value) for name, value in to_parameters(PipelineConfig()).items()},
}


@dataclass
class VariantRun:
    """A variant on a dataset. Call `run`, `score` and `save` in this order; what is saved is what ran.

    Args:
        config: the pipeline.
        dataset: what it is asked, and where it looks.
        questions: ids asked.
        answered: ids for which answers are generated.
        metrics: names of metrics.
        judge: the chat model that judges, or None.
        judge_language: of the examples in the judge's prompts; RAGAs' own, English, where empty.
        metric_embedding: the model that metrics embed with; the same for all variants of an experiment.
        repeats: how often each question is asked.
        out: folder that receives the results; None keeps them in memory.
    """

    config: PipelineConfig
    dataset: Dataset
    questions: tuple[str, ...]
    answered: tuple[str, ...]
    metrics: tuple[str, ...]
    judge: str | None = None
    judge_language: str = ""
    metric_embedding: str = ""
    repeats: int = 1
    out: Path | None = None
    traces: list[Trace] = field(default_factory=list, init=False)
    scores: list[Score] = field(default_factory=list, init=False)
    problems: tuple[Problem, ...] = field(default=(), init=False)

    @classmethod
    def from_parameters(cls, values: Mapping[str, Any]) -> VariantRun:
        """Read the parameters of `02_run_variant` out of `values`, the notebook's `globals()`.

        Raises:
            RagLabError: if a value is impossible, or names a file, dataset or question that is not there.
        """
        values = given(values, PARAMETERS)
        base = PipelineConfig.load(Path(values["CONFIG"])) if values["CONFIG"] else PipelineConfig()
        config = from_parameters(base, parameters_in(values))
        if not 1 <= values["REPEATS"] <= MAX_REPEATS:
            raise ConfigError(f"REPEATS must be a whole number from 1 to {MAX_REPEATS}, got {values['REPEATS']}.")
        metrics = split_names(values["METRICS"])
        if problems := metric_problems(metrics, bool(values["JUDGE"]), language=values["JUDGE_LANGUAGE"]):
            raise ConfigError("; ".join(problems))
        dataset = Dataset.load(values["DATASET"])
        questions, answered = _questions(dataset, values["QUESTIONS"])
        return cls(
            config=config,
            dataset=dataset,
            questions=questions,
            answered=answered,
            metrics=metrics,
            judge=values["JUDGE"] or None,
            judge_language=values["JUDGE_LANGUAGE"],
            metric_embedding=values["METRIC_EMBEDDING"] or config.models.embedding,
            repeats=values["REPEATS"],
            out=Path(values["OUT"]) if values["OUT"] else None,
        )

    @cached_property
    def pipeline(self) -> Pipeline:
        """The pipeline; the index is built on first use."""
        return Pipeline(self.dataset, self.config, progress=self.out is None)

    def run(self) -> list[Trace]:
        """Ask the questions and return one trace for each repeat and question, in this order."""
        chosen = set(self.questions)
        asked = [question for question in self.dataset.questions if question.question_id in chosen]
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
        answered = set(self.answered) if self.config.answer.is_on else set()
        read = reads_of(self.metrics, answered)
        with NotebookProgress(self._live) as progress:
            progress.enter("index")
            self.pipeline.prepare()
            self.problems = (*self.pipeline.index.problems, *self.pipeline.locate(asked)[1])
            self.traces = [
                trace
                for repeat in range(self.repeats)
                for trace in self.pipeline.run(asked, repeat=repeat, answer=answered, read=read, progress=progress)
            ]
        return self.traces

    def score(self) -> pd.DataFrame:
        """Score the traces and return one row a (question, metric, repeat)."""
        from rag_lab.evaluation.evaluate import evaluate
        from rag_lab.models.remembered_embeddings import RememberedEmbedder
        from rag_lab.runs.score_file import to_frame

        with NotebookProgress(self._live) as progress:
            progress.enter("score")
            self.scores = evaluate(
                self.traces,
                self.metrics,
                judge=registry.chat_model(self.judge) if self.judge else None,
                embedder=RememberedEmbedder(registry.embedder(self.metric_embedding), home() / "vectors.sqlite"),
                memory=home() / "scores.sqlite",
                language=self.judge_language,
                progress=self.out is None,
            )
        return to_frame(self.name, self.scores)

    def summary(self) -> pd.DataFrame:
        """Return the mean of each metric beside how many questions were asked, scored, failed or not applicable."""
        return summary_table(self.metrics, self.scores)

    def save(self) -> Path | None:
        """Write config, traces, scores, excerpts and a record of what ran to `out`, each whole; return `out`."""
        from rag_lab.runs.score_file import write_scores

        if self.out is None:
            _LOGGER.info("OUT is empty: nothing is saved")
            return None
        (self.out / CONFIG_FILE).write_text(self.config.to_yaml(), encoding="utf-8")
        write_traces(self.out / TRACES_FILE, self.traces)
        write_scores(self.out / SCORES_FILE, {self.name: self.scores})
        write_json(self.out / EXCERPTS_FILE, self._excerpts())
        write_json(self.out / RECORD_FILE, self.record())
        return self.out

    @property
    def name(self) -> str:
        """The variant's id: the name of its folder."""
        return self.out.name if self.out else "variant"

    def record(self) -> dict[str, Any]:
        """Return what ran, as JSON values: configuration, models, counts, problems, peak memory."""
        failed = Counter(trace.failure.stage for trace in self.traces if trace.failure)
        return {
            "config_identity": self.config.identity,
            "models": self.pipeline.identities({record.stage for trace in self.traces for record in trace.stages}),
            "judge": dict(registry.chat_model(self.judge).identity()) if self.judge else None,
            "judge_language": self.judge_language,
            "metric_embedding": self._metric_embedding(),
            "traces": len(self.traces),
            "failed_stages": dict(failed),
            "curable": {
                "questions": sum(trace.curable or self.pipeline.index.is_curable for trace in self.traces),
                "scores": sum(score.curable for score in self.scores),
            },
            "damaged_results": Dropped.n,
            "problems": [str(problem) for problem in self.problems],
            "peak_memory_mb": peak_memory_mb(),
        }

    def _metric_embedding(self) -> dict[str, Any] | None:
        """Return the identity of the model that metrics embed with; None where none of them does."""
        if any("embeddings" in parse_name(name).info.needs for name in self.metrics):
            return dict(registry.embedder(self.metric_embedding).identity())
        return None

    def _excerpts(self) -> dict[str, str]:
        """Return how each ranked passage begins; the traces hold no text where nobody reads the context."""
        hits = {hit.parent_id: hit for trace in self.traces for hit in trace.ranked}
        return {name: excerpt(self.pipeline.index.text(hit)) for name, hit in hits.items()}

    def _repr_html_(self) -> str:
        from html import escape

        asked = f"{self.dataset.name}: {len(self.questions)} questions asked, {len(self.answered)} answered"
        return f"<p>{escape(asked)}</p><pre>{escape(self.config.to_yaml())}</pre>"

    @property
    def _live(self) -> Path | None:
        return self.out / LIVE_FILE if self.out else None


def _questions(dataset: Dataset, wanted: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids to ask and to answer: all, a stratified sample of a size, or those of a run folder's plan."""
    ids = tuple(question.question_id for question in dataset.questions)
    if not wanted:
        return ids, ids
    if wanted.isdigit():
        if int(wanted) == 0:
            raise ConfigError("QUESTIONS must be at least one, got 0; leave it empty for all.")
        chosen = set(stratified(dataset.questions, int(wanted), seed=0))
        sample = tuple(question_id for question_id in ids if question_id in chosen)
        return sample, sample
    run = RunFolder.open(Path(wanted).parent)
    missing = [question_id for question_id in run.questions if question_id not in set(ids)]
    if missing:
        raise ConfigError(f"{wanted} asks questions that {dataset.name} does not have: {', '.join(missing[:5])}.")
    return run.questions, run.answered
