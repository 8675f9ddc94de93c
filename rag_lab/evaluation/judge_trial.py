"""A judge, or a metric, on trial before its scores are believed.

Three questions to a judge: does it give the objects that each metric needs; does it tell a right answer from one made
wrong; does it say the same when asked again? Answer correctness is tried without its cosine, which would tell a changed
answer from its reference whatever the judge says.

A right answer is the first reference, given the passages that hold its evidence. A wrong one is the same answer after a
perturbation, given the same passages; where the citation is moved, the answer stays and the passage is another one's.
"""

import re
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tqdm.auto import tqdm

from rag_lab._kit.registry import version
from rag_lab.corpus.build_index import CHUNKS
from rag_lab.corpus.chunk_store import ChunkStore, locate_evidence, write_chunks
from rag_lab.corpus.chunks import split
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.folder import load_folder
from rag_lab.data import synthetic
from rag_lab.data.dataset import Dataset
from rag_lab.data.sampling import stratified
from rag_lab.errors import DatasetError
from rag_lab.evaluation.evaluate import evaluate, score_metric
from rag_lab.evaluation.judge_check import ALL, MIN_QUESTIONS, Agreement, Discrimination, JudgeCheck, Objects
from rag_lab.evaluation.judge_queue import JudgeReplies
from rag_lab.evaluation.metric import Metric, Tools, model_name
from rag_lab.evaluation.ragas_metrics import SPECS, make_metric
from rag_lab.evaluation.registry import AnyMetric, describe, parse_name
from rag_lab.memory.results import Memory
from rag_lab.models.protocols import ChatModel, Embedder
from rag_lab.records import Answer, Citation, Passage, Question, Score, StageRecord, Trace
from rag_lab.statistics.shares import auc_interval

_WITHOUT_COSINE = replace(SPECS["answer_correctness"], models=("judge",), low=0.0, settings={"weights": [1.0, 0.0]})
_EXCERPT = re.compile(r": ['\"].*$", re.DOTALL)  # the reply's own words at the end of a reason


@dataclass(frozen=True, slots=True)
class TrialItem:
    """An answer that the judge must score; `perturbation` is None where it is right."""

    trace: Trace
    perturbation: synthetic.Perturbation | None = None


def trial_items(dataset: Dataset, n_questions: int, seed: int = 0) -> list[TrialItem]:
    """Return the right answer of each of `n_questions` questions, followed by what could be made of it."""
    answered = [q for q in dataset.questions if q.answerable and q.answers and q.answers[0].strip() and q.evidence]
    if answered:
        with tempfile.TemporaryDirectory() as folder:
            documents = load_folder(dataset.corpus_dir).documents
            write_chunks(Path(folder) / CHUNKS, documents, split(documents, CorpusConfig()))
            store = ChunkStore(Path(folder) / CHUNKS)
            located = [tuple(locate_evidence(store, item)[0] for item in q.evidence) for q in answered]
            answered = [replace(q, evidence=evidence) for q, evidence in zip(answered, located, strict=True)]
    usable = [question for question in answered if _contexts(question)]
    if not usable:
        reason = "no question has both a reference answer and evidence of which the passage is known"
        raise DatasetError(f"Dataset {dataset.name!r} cannot try a judge: {reason}; add them, or take another dataset.")
    chosen = set(stratified(usable, n_questions, seed))
    items: list[TrialItem] = []
    for place, question in enumerate(usable):
        if question.question_id not in chosen:
            continue
        others = [*usable[place + 1 :], *usable[:place]]
        right, contexts = question.answers[0], _contexts(question)
        names = [name for other in others for name in synthetic.entities(other.answers[0])]
        wrong: dict[synthetic.Perturbation, str | None] = {
            "swapped_entity": synthetic.swap_entity(right, names),
            "negation": synthetic.negate(right),
            "changed_number": synthetic.change_number(right),
            "unsupported_sentence": synthetic.add_unsupported_sentence(right, [other.answers[0] for other in others]),
        }
        items.append(TrialItem(_trace(question, right, contexts)))
        items += [TrialItem(_trace(question, text, contexts), name) for name, text in wrong.items() if text is not None]
        unlike = (context for other in others for context in _contexts(other))
        moved = next((context for context in unlike if context.strip() and context not in contexts), None)
        if moved is not None:
            items.append(TrialItem(_trace(question, right, [moved]), "moved_citation"))
    return items


def _contexts(question: Question) -> list[str]:
    return list(dict.fromkeys(item.context for item in question.evidence if item.context))


def _trace(question: Question, answer: str, contexts: Sequence[str]) -> Trace:
    source = question.evidence[0].source
    passages = tuple(
        Passage(number, f"{source}:{number}", source, None, 0, len(text), text)
        for number, text in enumerate(contexts, 1)
    )
    citations = tuple(Citation(passage.number, source, None) for passage in passages)
    stages = (StageRecord("context"), StageRecord("generate"))
    return Trace(question, passages=passages, answer=Answer(answer, citations), stages=stages)


def try_metric(
    metric: AnyMetric,
    dataset: Dataset,
    *,
    n_questions: int = 40,
    judge: ChatModel | None = None,
    embedder: Embedder | None = None,
    memory: Path | str | None = None,
    seed: int = 0,
) -> list[Discrimination]:
    """Try a metric on answers made from a dataset; return one result a perturbation, and one of all.

    The right answers are the dataset's, given the passages that hold their evidence; each is made wrong in up to five
    ways. More must be better. A metric that compares an answer with the reference knows the right one by heart: try it
    on nothing but `moved_citation`.
    """
    items = trial_items(dataset, n_questions, seed)
    scores = evaluate([item.trace for item in items], [metric], judge=judge, embedder=embedder, memory=memory)
    return discriminations(parse_name(metric).name, items, scores, synthetic.PERTURBATIONS)


def discriminations(
    metric: str, items: Sequence[TrialItem], scores: Sequence[Score], seen: Collection[synthetic.Perturbation]
) -> list[Discrimination]:
    """Return one result for each perturbation of `seen`, and one of all; answers without a score are out."""
    results = []
    for name, some in [*((name, {name}) for name in seen), (ALL, set(seen))]:
        clusters: dict[str, tuple[list[float], list[float]]] = {}
        for item, score in zip(items, scores, strict=True):
            if score.value is not None and (item.perturbation is None or item.perturbation in some):
                right, wrong = clusters.setdefault(score.question_id, ([], []))
                (right if item.perturbation is None else wrong).append(score.value)
        paired = [cluster for cluster in clusters.values() if all(cluster)]
        auc, n_wrong = auc_interval(paired), sum(len(wrong) for _, wrong in paired)
        results.append(Discrimination(metric, name, auc.mean, auc.low, auc.high, auc.n, n_wrong, auc.reason))
    return results


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
    """Try a judge on answers made from a dataset of questions with reference answers and evidence.

    Args:
        n_questions: 20 or more for a judge to pass; each gives a right answer and up to five wrong ones.
        metrics: whose objects are tried; all judged metrics where None.
        embedder: for metrics that also compare meanings; those are left out where None.
        memory: a file that keeps the scores, so that an interrupted trial goes on.
    """
    started = time.perf_counter()
    identity = dict(judge.identity())
    items = trial_items(dataset, n_questions, seed)
    names = judged_metrics(embedder is not None, language) if metrics is None else list(metrics)
    right = [item.trace for item in items if item.perturbation is None]
    tried = evaluate(right, names, judge=judge, embedder=embedder, memory=memory, language=language, progress=progress)
    store = Memory(memory) if memory is not None else None
    tools = Tools(judge, replies=JudgeReplies(judge, store), language=language)
    faithfulness = make_metric("ragas.faithfulness", SPECS["faithfulness"], tools)
    correctness = make_metric("ragas.answer_correctness without cosine", _WITHOUT_COSINE, tools)
    first = _score(faithfulness, items, store, progress)
    correct = _score(correctness, items, store, progress)
    second = _score(faithfulness, [replace(i, trace=replace(i.trace, repeat=1)) for i in items], store, progress)
    objects = []
    for name in names:
        asked = [score for score in tried if score.metric == name and score.status != "not_applicable"]
        reasons = Counter(_EXCERPT.sub("", score.reason) for score in asked if score.status == "failed")
        n_scored = sum(score.status == "scored" for score in asked)
        objects.append(Objects(name, n_scored, len(asked), tuple(reasons.most_common())))
    both = [(a.value, b.value) for a, b in zip(first, second, strict=True)]
    apart = [abs(a - b) for a, b in both if a is not None and b is not None]
    exact, mean = (sum(one == 0 for one in apart) / len(apart), sum(apart) / len(apart)) if apart else (None, None)
    # A moved citation is seen only where the passages are read.
    texts = [name for name in synthetic.PERTURBATIONS if name != "moved_citation"]
    return JudgeCheck(
        judge=model_name(identity),
        identity=identity,
        dataset=dataset.name,
        dataset_digest=dataset.digest,
        n_questions=len(right),
        checked_at=datetime.now(UTC).isoformat(timespec="seconds"),
        objects=tuple(objects),
        telling=(
            *discriminations(faithfulness.name, items, first, synthetic.PERTURBATIONS),
            *discriminations(correctness.name, items, correct, texts),
        ),
        agreement=Agreement(faithfulness.name, len(apart), exact, mean, len(both) - len(apart)),
        calls=sum(score.calls for score in (*tried, *first, *correct, *second)),
        seconds=time.perf_counter() - started,
        ragas=version("ragas"),
        language=language,
    )


def _score(metric: Metric, items: Sequence[TrialItem], store: Memory | None, progress: bool) -> list[Score]:
    with tqdm(total=len(items), desc=metric.name, unit="score", disable=not progress) as bar:
        return score_metric(metric, [item.trace for item in items], store, bar.update)
