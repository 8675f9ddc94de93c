"""What the chat models took of the machine that they computed on, as the records of the stages tell it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rag_lab._kit.machine.energy import NO_METER
from rag_lab.evaluation.metric import Gap
from rag_lab.records import MachineUse, Trace

NOT_HERE = "no chat model of this machine was asked, or what it took was not measured"


def _tokens_per_second(trace: Trace) -> float | Gap:
    wrote = [record for record in trace.stages if record.tokens_out]
    seconds = sum(record.seconds for record in wrote)
    if not seconds:
        return Gap("not_applicable", "no chat model wrote anything")
    return sum(record.tokens_out for record in wrote) / seconds


def _load_seconds(trace: Trace) -> float | Gap:
    return _sum_of_models(trace, lambda use: use.load_s)


def _memory_mb(trace: Trace) -> float | Gap:
    return _sum_of_models(trace, lambda use: use.memory_mb)


def _joules(trace: Trace) -> float | Gap:
    uses = _uses(trace)
    known = [use.joules for _, use in uses if use.joules is not None]
    return sum(known) if known else Gap("not_applicable", NO_METER if uses else NOT_HERE)


def _sum_of_models(trace: Trace, figure: Callable[[MachineUse], float | None]) -> float | Gap:
    """Return the sum over models of a figure that a model has once, however many stages ask it: its largest."""
    largest: dict[str, float] = {}
    for model, use in _uses(trace):
        value = figure(use)
        if value is not None:
            largest[model] = max(value, largest.get(model, 0.0))
    return sum(largest.values()) if largest else Gap("not_applicable", NOT_HERE)


def _uses(trace: Trace) -> list[tuple[str, MachineUse]]:
    """Return what each call of a model of this machine took, beside the model."""
    return [(record.model, record.machine) for record in trace.stages if record.machine is not None]


MEASURES: Mapping[str, Callable[[Trace], float | Gap]] = {
    "cost.tokens_per_second": _tokens_per_second,
    "cost.load_seconds": _load_seconds,
    "cost.memory_mb": _memory_mb,
    "cost.joules": _joules,
}
