"""What the stages of a variant computed without a chat model, and how long it took; calls are in the run's ledger."""

from __future__ import annotations

from collections.abc import Sequence

from rag_lab.chat_stage import ChatStage
from rag_lab.experiment.foresight import model_of
from rag_lab.experiment.rates import Rate
from rag_lab.pipeline import Pipeline
from rag_lab.records import Trace
from rag_lab.rerank.pairs import PairRerank
from rag_lab.stage import Stage

INDEX = "index"  # embedding the children, in chunks


def stage_work(pipeline: Pipeline, traces: Sequence[Trace]) -> list[Rate]:
    """Return for each costly stage what it computed for these traces; what came from the memory is left out."""
    rates = (_rate(stage, traces) for stage in pipeline.stages if stage.costly and not isinstance(stage, ChatStage))
    return [rate for rate in rates if rate is not None]


def _rate(stage: Stage, traces: Sequence[Trace]) -> Rate | None:
    computed = [
        (trace, record.seconds - record.replayed_s)
        for trace in traces
        for record in trace.stages
        if record.stage == stage.name and not record.remembered
    ]
    units = _pairs([trace for trace, _ in computed]) if isinstance(stage, PairRerank) else len(computed)
    return Rate(stage.name, model_of(stage), units, sum(seconds for _, seconds in computed)) if units else None


def _pairs(traces: Sequence[Trace]) -> int:
    """Return how many different pairs of question and passage the traces hold: one that repeats is scored once."""
    return len({(trace.search_query, hit.chunk_id) for trace in traces for hit in trace.candidates})
