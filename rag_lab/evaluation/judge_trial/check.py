"""The judge on trial, before its scores are believed.

Three questions: does it give the objects that each metric needs; does it tell a right answer from one made wrong; does
it say the same when asked again? Answer correctness is tried without its cosine, which would tell a changed answer from
its reference whatever the judge says.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tqdm.auto import tqdm

from rag_lab.data.dataset import Dataset
from rag_lab.data.perturb import PERTURBATIONS, Perturbation
from rag_lab.evaluation.evaluate import evaluate
from rag_lab.evaluation.judge.replies import JudgeReplies
from rag_lab.evaluation.judge_trial.items import TrialItem, trial_items
from rag_lab.evaluation.judge_trial.metric_trial import tellings
from rag_lab.evaluation.judge_trial.record import judge_banner, load_check, save_check
from rag_lab.evaluation.judge_trial.result import MIN_QUESTIONS, Agreement, JudgeCheck, Objects
from rag_lab.evaluation.metric import Metric, Tools, model_name
from rag_lab.evaluation.ragas.metrics import make_metric
from rag_lab.evaluation.ragas.table import SPECS
from rag_lab.evaluation.registry import describe
from rag_lab.evaluation.remembered import score_metric
from rag_lab.evaluation.remembered_whole import TracesScored
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatModel, Embedder
from rag_lab.records import Score

__all__ = ["check_judge", "judge_banner", "judged_metrics", "load_check", "save_check"]

_EXCERPT = re.compile(r": ['\"].*$", re.DOTALL)  # the reply's own words at the end of a reason


def judged_metrics(has_embedder: bool, language: str = "") -> list[str]:
    """Return the names of the metrics that ask a judge and lack neither an embedder nor prompts in `language`."""
    judged = [info for info in describe() if "judge" in info.needs and (info.translatable or not language)]
    return [info.name for info in judged if has_embedder or "embeddings" not in info.needs]


def check_judge(
    judge: ChatModel,
    dataset: Dataset,
    *,
    n_questions: int = MIN_QUESTIONS,
    metrics: Sequence[str] | None = None,
    embedder: Embedder | None = None,
    language: str = "",
    memory: Path | str | None = None,
    seed: int = 0,
    progress: bool = False,
) -> JudgeCheck:
    """Try a judge on answers made from a dataset.

    Args:
        judge: the chat model.
        dataset: questions with reference answers and evidence.
        n_questions: how many of its questions, 20 or more for a judge to pass; each gives a right answer and up to
            five wrong ones.
        metrics: whose objects are tried; all judged metrics where None.
        embedder: for metrics that also compare meanings; those are left out where None.
        language: of the examples in the judge's prompts; RAGAs' own, English, where empty.
        memory: a file that keeps the scores, so that an interrupted trial goes on.
        seed: of the sample of questions.
        progress: show progress bars.

    Raises:
        DatasetError: if the dataset has no question that can be used.
        ConfigError: if a metric is unknown or lacks a model.
        ModelError: if a model cannot even tell its identity.
    """
    started = time.perf_counter()
    identity = dict(judge.identity())
    items = trial_items(dataset, n_questions, seed)
    names = judged_metrics(embedder is not None, language) if metrics is None else list(metrics)
    right = [item.trace for item in items if item.perturbation is None]
    tried = evaluate(right, names, judge=judge, embedder=embedder, memory=memory, language=language, progress=progress)
    store = Memory(memory) if memory is not None else None
    tools = Tools(judge, replies=JudgeReplies(judge, store), language=language)
    trials = [(metric, _score(metric, items, store, progress)) for metric in _telling_metrics(tools)]
    faithfulness, first = trials[0]
    second = _score(faithfulness, [replace(i, trace=replace(i.trace, repeat=1)) for i in items], store, progress)
    scores = [*tried, *(score for _, found in trials for score in found), *second]
    return JudgeCheck(
        judge=model_name(identity),
        identity=identity,
        dataset=dataset.name,
        dataset_digest=dataset.digest,
        n_questions=len(right),
        checked_at=datetime.now(UTC).isoformat(timespec="seconds"),
        objects=tuple(_objects(name, [score for score in tried if score.metric == name]) for name in names),
        telling=tuple(
            each for metric, found in trials for each in tellings(metric.name, items, found, _seen(metric.name))
        ),
        agreement=_agreement(faithfulness.name, first, second),
        calls=sum(score.calls for score in scores),
        seconds=time.perf_counter() - started,
        ragas=version("ragas"),
        language=language,
    )


def _telling_metrics(tools: Tools) -> list[Metric]:
    """Return faithfulness, and answer correctness as the judge alone sees it."""
    correctness = replace(SPECS["answer_correctness"], models=("judge",), low=0.0, settings={"weights": [1.0, 0.0]})
    return [
        make_metric("ragas.faithfulness", SPECS["faithfulness"], tools),
        make_metric("ragas.answer_correctness without cosine", correctness, tools),
    ]


def _score(metric: Metric, items: Sequence[TrialItem], store: Memory | None, progress: bool) -> list[Score]:
    with tqdm(total=len(items), desc=metric.name, unit="score", disable=not progress) as bar:
        return score_metric(metric, TracesScored([item.trace for item in items]), store, bar.update)


def _objects(metric: str, scores: Sequence[Score]) -> Objects:
    asked = [score for score in scores if score.status != "not_applicable"]
    reasons = Counter(_EXCERPT.sub("", score.reason) for score in asked if score.status == "failed")
    n_scored = sum(score.status == "scored" for score in asked)
    return Objects(metric, n_scored, len(asked), tuple(reasons.most_common()))


def _seen(metric: str) -> list[Perturbation]:
    """Return the perturbations that a metric can see: a moved citation only where the passages are read."""
    return [name for name in PERTURBATIONS if name != "moved_citation" or metric == "ragas.faithfulness"]


def _agreement(metric: str, first: Sequence[Score], second: Sequence[Score]) -> Agreement:
    both = [(a.value, b.value) for a, b in zip(first, second, strict=True)]
    scored = [(a, b) for a, b in both if a is not None and b is not None]
    if not scored:
        return Agreement(metric, 0, None, None, len(both))
    apart = [abs(a - b) for a, b in scored]
    exact = sum(distance == 0 for distance in apart) / len(apart)
    return Agreement(metric, len(scored), exact, sum(apart) / len(apart), len(both) - len(scored))
