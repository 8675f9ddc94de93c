"""A metric on trial: does its score tell a right answer from one made wrong?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from rag_lab.data.dataset import Dataset
from rag_lab.data.perturb import PERTURBATIONS, Perturbation
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.judge_trial.items import TrialItem, trial_items
from rag_lab.evaluation.judge_trial.result import ALL, Telling
from rag_lab.evaluation.registry import AnyMetric, parse_name
from rag_lab.models.protocols import ChatModel, Embedder
from rag_lab.records import Score
from rag_lab.statistics.shares import auc_interval


def try_metric(
    metric: AnyMetric,
    dataset: Dataset,
    *,
    n_questions: int = 40,
    judge: ChatModel | None = None,
    embedder: Embedder | None = None,
    memory: Path | str | None = None,
    seed: int = 0,
) -> list[Telling]:
    """Try a metric, one of your own or one with a name, on answers made from a dataset.

    The right answers are the dataset's, given the passages that hold their evidence; each is made wrong in up to five
    ways. A metric that compares an answer with the reference knows the right one by heart: try it on nothing but
    `moved_citation`.

    Args:
        metric: as for `evaluate`; more must be better.
        dataset: questions with reference answers and evidence.
        n_questions: how many of them.
        judge: where the metric asks one.
        embedder: where the metric compares meanings.
        memory: a file that keeps the scores, so that an interrupted trial goes on.
        seed: of the sample of questions.

    Returns:
        One result a perturbation, and one of all.

    Raises:
        DatasetError: if the dataset has no question that can be used.
        ConfigError: if the metric is unknown or lacks a model.
    """
    items = trial_items(dataset, n_questions, seed)
    scores = evaluate([item.trace for item in items], [metric], judge=judge, embedder=embedder, memory=memory)
    return tellings(parse_name(metric).name, items, scores, PERTURBATIONS)


def tellings(
    metric: str, items: Sequence[TrialItem], scores: Sequence[Score], seen: Collection[Perturbation]
) -> list[Telling]:
    """Return one result for each perturbation of `seen`, and one of all; answers without a score are out."""
    each = [_telling(metric, name, {name}, items, scores) for name in seen]
    return [*each, _telling(metric, ALL, set(seen), items, scores)]


def _telling(
    metric: str,
    name: str,
    seen: Collection[Perturbation],
    items: Sequence[TrialItem],
    scores: Sequence[Score],
) -> Telling:
    clusters: dict[str, tuple[list[float], list[float]]] = {}
    for item, score in zip(items, scores, strict=True):
        if score.value is not None and (item.perturbation is None or item.perturbation in seen):
            right, wrong = clusters.setdefault(score.question_id, ([], []))
            (right if item.perturbation is None else wrong).append(score.value)
    paired = [cluster for cluster in clusters.values() if all(cluster)]
    found = auc_interval(paired)
    n_wrong = sum(len(wrong) for _, wrong in paired)
    return Telling(metric, name, found.mean, found.low, found.high, found.n, n_wrong, found.reason)
