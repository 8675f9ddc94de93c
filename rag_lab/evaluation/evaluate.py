"""Scores of traces. Costly ones are remembered, so that an interrupted evaluation goes on where it stopped.

A score that follows from what a trace says takes 3 to 40 microseconds: less than to look up whether it is known.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter
from tqdm.auto import tqdm

from rag_lab._kit.digest import digest
from rag_lab._kit.observability import set_attributes, span
from rag_lab.errors import ConfigError
from rag_lab.evaluation.judge_queue import JudgeReplies
from rag_lab.evaluation.metric import CostlyMetric, Metric, Tools, Visible
from rag_lab.evaluation.registry import AnyMetric, build_metric, parse_name, problems
from rag_lab.memory.results import Memory, Work, batches, retries_failed
from rag_lab.models.protocols import ChatModel, Embedder
from rag_lab.models.shared import booked
from rag_lab.records import Score, Trace
from rag_lab.rich_display import rich_display


@rich_display("rag_lab.notebook.views.pipeline_view:scores_view")
class Scores(list[Score]):
    """A list; where it is shown, a row a metric with mean, interval and counts."""


def evaluate(
    traces: Sequence[Trace],
    metrics: Sequence[AnyMetric],
    *,
    judge: ChatModel | None = None,
    embedder: Embedder | None = None,
    memory: Path | str | None = None,
    language: str = "",
    visible: Visible | None = None,
    progress: bool = False,
) -> Scores:
    """Return one score for each metric and trace: in the order of `metrics`, and of `traces` within each.

    Args:
        metrics: names as in `metric_names()`, e.g. `retrieval.ndcg@10`; or your own: functions `(trace) -> float`,
            instances of a class with such a `__call__`, `module:function`.
        embedder: the model behind metrics that compare meanings.
        memory: a file (`home() / "scores.sqlite"`) that keeps scores and replies; None keeps nothing.
        language: put the examples in RAGAs' prompts into this language ("german"), translated by the judge.
        visible: tells whether the asker of a question may see a file, which `access.leak` asks; see `visible_in`.


    Raises:
        ConfigError: naming every unknown metric, impossible cut-off, missing model and missing language at once.
        ModelError: if a model cannot even tell its identity (its package or its weights are missing).
    """
    wrong = problems(metrics, judge is not None, embedder is not None, language)
    if wrong:
        raise ConfigError(" ".join(wrong))
    store = Memory(memory) if memory is not None else None
    tools = Tools(judge, embedder, JudgeReplies(judge, store) if judge is not None else None, language, visible)
    scores, n_scores = Scores(), len(metrics) * len(traces)
    bar = tqdm(total=n_scores, desc="scoring", unit="score", disable=not progress)
    with store.opened() if store else nullcontext(), bar:
        for metric in metrics:
            payer = booked(judge, parse_name(metric).name) if judge is not None else None
            built = build_metric(metric, replace(tools, judge=payer))
            with span(f"metric {built.name}", {"rag_lab.traces": len(traces)}):
                scores += score_metric(built, traces, store, bar.update)
            bar.update(len(scores) - bar.n)
    return scores


_SCORE: TypeAdapter[Score] = TypeAdapter(Score)

Advance = Callable[[int], object]  # is called with how many traces were scored


def score_metric(metric: Metric, traces: Sequence[Trace], memory: Memory | None, advance: Advance) -> list[Score]:
    """Return one score for each trace, in order; of a costly metric only what `memory` does not hold is computed.

    Costly scores are saved after each `metric.batch_size`. What another attempt may cure is not remembered; nor is what
    failed without a model, which is quickly tried again.
    """
    if not isinstance(metric, CostlyMetric):
        return metric.score(traces)
    if memory is None:
        scores = list[Score]()
        for some in batches(traces, metric.batch_size):
            scores += metric.score(some)
            advance(len(some))
        return scores
    asks_models = bool(metric.needs & {"judge", "embeddings"})
    identity = digest(dict(metric.identity()))
    keys = [score_key(metric, identity, trace) for trace in traces]
    wanted = {key: trace for key, trace in zip(keys, traces, strict=True) if key is not None}

    def encode(score: Score) -> str | None:
        is_of_run = (score.question_id, score.repeat) in metric.of_run
        passes = score.curable or is_of_run or (score.status == "failed" and not asks_models)
        return None if passes else _SCORE.dump_json(score).decode()

    work = Work(
        metric.name,
        lambda keys: dict(zip(keys, metric.score([wanted[key] for key in keys]), strict=True)),
        encode,
        _SCORE.validate_json,
        metric.batch_size,
    )
    found = work.recall(memory, wanted)
    if retries_failed():
        found |= work.again(memory, [key for key, score in found.items() if score.status == "failed"])
    advance(sum(key in found for key in keys))
    set_attributes(rag_lab__remembered=sum(key in found for key in keys))
    found |= work.do(memory, [key for key in wanted if key not in found], lambda new, waits: advance(new))
    without_key = iter(metric.score([trace for trace, key in zip(traces, keys, strict=True) if key is None]))
    return [  # two questions may ask the judge for the same thing
        next(without_key)
        if key is None
        else replace(found[key], question_id=trace.question.question_id, repeat=trace.repeat)
        for trace, key in zip(traces, keys, strict=True)
    ]


def score_key(metric: CostlyMetric, identity: str, trace: Trace) -> str | None:
    """Return the key of a score, by the digest of the metric's identity; None where there is nothing to compute."""
    reads = metric.reads(trace)
    return None if reads is None else digest({"metric": identity, "repeat": trace.repeat, "reads": dict(reads)})
