"""Scores that cost a model's work are remembered, so that an interrupted evaluation goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pydantic import TypeAdapter

from rag_lab.digest import digest
from rag_lab.evaluation.metric import CostlyMetric, Metric
from rag_lab.memory import Memory, batches
from rag_lab.records import Score, Trace
from rag_lab.waiting import Waiting

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
    found = {key: _SCORE.validate_json(text) for key, text in memory.recall(wanted).items()}
    advance(sum(key in found for key in keys))
    found |= _measure_missing(metric, wanted, found, memory, advance)
    without_key = iter(metric.score([trace for trace, key in zip(traces, keys, strict=True) if key is None]))
    return [
        next(without_key) if key is None else _of(trace, found[key]) for trace, key in zip(traces, keys, strict=True)
    ]


def score_key(metric: CostlyMetric, identity: str, trace: Trace) -> str | None:
    """Return the key of a score, by the digest of the metric's identity; None where no model is asked."""
    reads = metric.reads(trace)
    return None if reads is None else digest({"metric": identity, "repeat": trace.repeat, "reads": dict(reads)})


def _measure_missing(
    metric: CostlyMetric, wanted: dict[str, Trace], found: dict[str, Score], memory: Memory, advance: Advance
) -> dict[str, Score]:
    """Measure what is not known, batch by batch, sharing the work with other processes that want the same."""
    fresh: dict[str, Score] = {}
    waiting = Waiting(memory, metric.name)
    while missing := [key for key in wanted if key not in found and key not in fresh]:
        mine = memory.claim(missing, metric.batch_size)
        if mine:
            new = _measure_claimed(metric, {key: wanted[key] for key in mine}, memory)
        else:
            new = {key: _SCORE.validate_json(text) for key, text in memory.recall(missing).items()}
            if not new:
                waiting.wait(missing)
        advance(len(new))
        fresh |= new
    return fresh


def _measure_claimed(metric: CostlyMetric, claimed: dict[str, Trace], memory: Memory) -> dict[str, Score]:
    with memory.keeping(claimed):
        scores = dict(zip(claimed, metric.score(list(claimed.values())), strict=True))
        lasting = {key: _SCORE.dump_json(score).decode() for key, score in scores.items() if not score.curable}
        memory.store(metric.name, lasting)
    return scores


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
