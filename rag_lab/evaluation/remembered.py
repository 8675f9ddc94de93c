"""Scores are remembered: nothing is computed twice, and an interrupted evaluation goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pydantic import TypeAdapter

from rag_lab._kit.digest import digest
from rag_lab._kit.observing.tracing import say
from rag_lab.evaluation.metric import CostlyMetric, Metric, TracedMetric
from rag_lab.evaluation.remembered_whole import TracesScored, score_whole
from rag_lab.memory.results import Memory, batches
from rag_lab.memory.sharing import Work, retries_failed
from rag_lab.records import Score, Trace

_SCORE: TypeAdapter[Score] = TypeAdapter(Score)

Advance = Callable[[int], object]  # told how many traces were scored


def score_metric(metric: Metric, given: TracesScored, memory: Memory | None, advance: Advance) -> list[Score]:
    """Return one score for each trace, in order, as remembered where the metric's values follow from what traces say.

    Costly ones are remembered one by one, quick ones all together. Those that measure the run are measured in each.
    """
    if isinstance(metric, CostlyMetric):
        if memory is None:
            return score_unremembered(metric, given.traces, advance)
        return score_costly(metric, given.traces, memory, advance)
    if memory is not None and isinstance(metric, TracedMetric) and metric.is_traced:
        return score_whole(metric, given, memory)
    return metric.score(given.traces)


def score_costly(metric: CostlyMetric, traces: Sequence[Trace], memory: Memory, advance: Advance) -> list[Score]:
    """Return one score for each trace, in order, computing only what `memory` does not hold.

    Scores are saved after each `metric.batch_size`. What another attempt may cure is not remembered; nor is what failed
    without a model, which is quickly tried again.
    """
    asks_models = bool(metric.needs & {"judge", "embeddings"})
    identity = digest(dict(metric.identity()))
    keys = [score_key(metric, identity, trace) for trace in traces]
    wanted = {key: trace for key, trace in zip(keys, traces, strict=True) if key is not None}

    def measure(keys: list[str]) -> dict[str, Score]:
        return dict(zip(keys, metric.score([wanted[key] for key in keys]), strict=True))

    def encode(score: Score) -> str | None:
        passes = score.curable or metric.is_of_run(score) or (score.status == "failed" and not asks_models)
        return None if passes else _SCORE.dump_json(score).decode()

    work = Work(metric.name, measure, encode, _SCORE.validate_json, metric.batch_size)
    found = work.recall(memory, wanted)
    if retries_failed():
        found |= work.again(memory, [key for key, score in found.items() if score.status == "failed"])
    advance(sum(key in found for key in keys))
    say(rag_lab__remembered=sum(key in found for key in keys))
    found |= work.do(memory, [key for key in wanted if key not in found], lambda new, waits: advance(new))
    without_key = iter(metric.score([trace for trace, key in zip(traces, keys, strict=True) if key is None]))
    return [
        next(without_key) if key is None else _of(trace, found[key]) for trace, key in zip(traces, keys, strict=True)
    ]


def score_key(metric: CostlyMetric, identity: str, trace: Trace) -> str | None:
    """Return the key of a score, by the digest of the metric's identity; None where there is nothing to compute."""
    reads = metric.reads(trace)
    return None if reads is None else digest({"metric": identity, "repeat": trace.repeat, "reads": dict(reads)})


def score_unremembered(metric: CostlyMetric, traces: Sequence[Trace], advance: Advance) -> list[Score]:
    """Return one score for each trace, in order, without a memory."""
    scores: list[Score] = []
    for some in batches(traces, metric.batch_size):
        scores += metric.score(some)
        advance(len(some))
    return scores


def _of(trace: Trace, score: Score) -> Score:
    """Return the score for `trace`: two questions may ask the judge for the same thing."""
    return replace(score, question_id=trace.question.question_id, repeat=trace.repeat)
