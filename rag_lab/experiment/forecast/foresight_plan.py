"""What a whole plan would do: every variant, every repeat, every metric."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rag_lab._kit.digest import digest
from rag_lab.corpus.files.folder import list_files
from rag_lab.evaluation.foreseen import reads_of
from rag_lab.evaluation.metric import Metric, Tools
from rag_lab.evaluation.registry import build_metric
from rag_lab.experiment.forecast.foreseen_work import Tally, Work
from rag_lab.experiment.forecast.foresight import Foreseen, foresee_traces
from rag_lab.experiment.forecast.foresight_scores import ScoreForesight
from rag_lab.memory.results import Memory
from rag_lab.models import shared
from rag_lab.models.remembered_embeddings import RememberedEmbedder
from rag_lab.pipeline import Pipeline

if TYPE_CHECKING:
    from rag_lab.experiment.plan import Plan

_INDEX = "index"  # embedding the children, in chunks


def foresee(plan: Plan, home: Path) -> list[Work]:
    """Return the work of the index, the stages and the metrics, in the order of the pipeline."""
    tally = Tally()
    embedding = plan.expansion.baseline.config.models.embedding
    metrics = _metrics(plan, embedding, home)
    scores = ScoreForesight(Memory(home / "scores.sqlite"), tally, plan.experiment.judge or "")
    order = [_INDEX]
    for variant in plan.variants:
        pipeline = Pipeline.planned(variant.config, plan.dataset, home=home)
        order += [stage.name for stage in pipeline.stages]
        traces = _foresee_variant(plan, pipeline, tally)
        for metric in metrics:
            scores.foresee(metric, traces)
    order += plan.experiment.metrics
    return sorted(tally.work, key=lambda work: order.index(work.purpose))


def _foresee_index(plan: Plan, pipeline: Pipeline, tally: Tally) -> None:
    """Count the chunks to embed; where a model reads or splits the files they are not known yet, and files count."""
    config, index = pipeline.config, pipeline.index
    if not index.is_built:
        if tally.is_new(str(index.path)):
            model = config.models.vision if config.corpus.pdf == "vision" else config.models.embedding
            tally.add(Work(_INDEX, model, "file", len(list_files(plan.dataset.corpus_dir).files)))
    elif (
        config.searches_vectors
        and not index.has_vectors
        and tally.is_new(digest([index.digest, index.vectors_identity]))
    ):
        texts = {key: known for key, known in index.known_texts().items() if tally.is_new(key)}
        n_known = sum(texts.values())
        tally.add(Work(_INDEX, config.models.embedding, "chunk", len(texts) - n_known, remembered=n_known))


def _foresee_variant(plan: Plan, pipeline: Pipeline, tally: Tally) -> list[Foreseen]:
    _foresee_index(plan, pipeline, tally)
    answered = set(plan.answered)
    asked = [question for question in plan.dataset.questions if question.question_id in set(plan.questions)]
    read = reads_of(plan.experiment.metrics, answered if pipeline.config.answer.is_on else ())
    return [
        each
        for repeat in range(plan.experiment.repeats)
        for each in foresee_traces(pipeline, asked, repeat, answered, read, tally)
    ]


def _metrics(plan: Plan, embedding: str, home: Path) -> list[Metric]:
    judge = plan.experiment.judge
    embedder = RememberedEmbedder(shared.embedder(embedding), home / "vectors.sqlite")
    tools = Tools(shared.chat_model(judge) if judge else None, embedder, language=plan.experiment.judge_language)
    return [build_metric(name, tools) for name in plan.experiment.metrics]
