"""Scores that cost a model's work are remembered, so that an interrupted evaluation goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pydantic import TypeAdapter

from rag_lab._kit.digest import digest
from rag_lab.evaluation.metric import CostlyMetric, Metric
from rag_lab.memory.results import Memory, batches
from rag_lab.memory.sharing import Work
from rag_lab.records import Score, Trace

_SCORE: TypeAdapter[Score] = TypeAdapter(Score)

Advance = Callable[[int], object]  # told how many traces were scored


def score_metric(metric: Metric, traces: Sequence[Trace], memory: Memory | None, advance: Advance) -> list[Score]:
    """Return one score for each trace, in order, remembering those that a model was asked for."""
    asks_models = bool(metric.needs & {"judge", "embeddings"})
    if not isinstance(metric, CostlyMetric) or not asks_models:
        return metric.score(traces)
    if memory is None:
        return score_unremembered(metric, traces, advance)
    return score_costly(metric, traces, memory, advance)


def score_costly(metric: CostlyMetric, traces: Sequence[Trace], memory: Memory, advance: Advance) -> list[Score]:
    """Return one score for each trace, in order, asking the models only for what `memory` does not hold.

    Scores are saved after each `metric.batch_size`; what another attempt may cure is not remembered.
    """
    identity = digest(dict(metric.identity()))
    keys = [score_key(metric, identity, trace) for trace in traces]
    wanted = {key: trace for key, trace in zip(keys, traces, strict=True) if key is not None}

    def measure(keys: list[str]) -> dict[str, Score]:
        return dict(zip(keys, metric.score([wanted[key] for key in keys]), strict=True))

    work = Work(metric.name, measure, _encode, _SCORE.validate_json, metric.batch_size)
    found = work.recall(memory, wanted)
    advance(sum(key in found for key in keys))
    found |= work.do(memory, [key for key in wanted if key not in found], lambda new, waits: advance(new))
    without_key = iter(metric.score([trace for trace, key in zip(traces, keys, strict=True) if key is None]))
    return [
        next(without_key) if key is None else _of(trace, found[key]) for trace, key in zip(traces, keys, strict=True)
    ]


def score_key(metric: CostlyMetric, identity: str, trace: Trace) -> str | None:
    """Return the key of a score, by the digest of the metric's identity; None where no model is asked."""
    reads = metric.reads(trace)
    return None if reads is None else digest({"metric": identity, "repeat": trace.repeat, "reads": dict(reads)})


def _encode(score: Score) -> str | None:
    return None if score.curable else _SCORE.dump_json(score).decode()


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
