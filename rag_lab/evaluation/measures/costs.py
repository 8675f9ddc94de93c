"""What the chat models took of the machine that they computed on, as the records of the stages tell it."""

from collections.abc import Callable, Mapping
from functools import partial

from rag_lab._kit.machine import NO_METER
from rag_lab.evaluation.metric import Family, Gap, Metric, MetricInfo, Needs, Tools, TraceMetric
from rag_lab.records import MachineUse, StageRecord, Trace

NOT_HERE = "no chat model of this machine was asked, or what it took was not measured"
_NEEDS: Needs = frozenset()
_SENTENCES = {
    "cost.seconds": "Seconds of all stages together, each as first computed, shared embeddings and pair scores "
    "included.",
    "cost.seconds.<stage>": "Seconds of one stage, named as on the trace, as first computed; what it shares is "
    "included.",
    "cost.tokens": "Tokens that models read and wrote for the question, all stages together.",
    "cost.thinking_tokens": "Of the tokens that models wrote for the question, those of their thinking.",
    "cost.usd": "US dollars that the providers charged, all stages together.",
    "cost.tokens_per_second": "Tokens written a second by the chat models that were asked, the reading of their "
    "prompts included.",
    "cost.load_seconds": "Seconds that the chat models of this machine took to load, once a process.",
    "cost.memory_mb": "MiB by which the process grew for the chat models of this machine: their weights, cache and "
    "most for a call.",
    "cost.joules": "Joules that the machine took while its chat models were asked (NVIDIA's meters and RAPL, "
    "all devices).",
}
INFOS = tuple(
    MetricInfo(name, text, _NEEDS, high=None, higher_is_better=name == "cost.tokens_per_second", is_cost=True)
    for name, text in _SENTENCES.items()
)
_COMPUTE: dict[str, Callable[[StageRecord], float]] = {
    "cost.seconds": lambda record: record.seconds,
    "cost.tokens": lambda record: record.tokens_in + record.tokens_out,
    "cost.thinking_tokens": lambda record: record.thinking_tokens,
    "cost.usd": lambda record: record.cost_usd,
}


def _tokens_per_second(trace: Trace) -> float | Gap:
    wrote = [record for record in trace.stages if record.tokens_out]
    seconds = sum(record.seconds for record in wrote)
    if not seconds:
        return Gap("not_applicable", "no chat model wrote anything")
    return sum(record.tokens_out for record in wrote) / seconds


def _joules(trace: Trace) -> float | Gap:
    uses = [record.machine for record in trace.stages if record.machine is not None]
    known = [use.joules for use in uses if use.joules is not None]
    return sum(known) if known else Gap("not_applicable", NO_METER if uses else NOT_HERE)


def _sum_of_models(trace: Trace, figure: Callable[[MachineUse], float | None]) -> float | Gap:
    """Return the sum over models of a figure that a model has once, however many stages ask it: its largest."""
    largest: dict[str, float] = {}
    for record in trace.stages:
        value = None if record.machine is None else figure(record.machine)
        if value is not None:
            largest[record.model] = max(value, largest.get(record.model, 0.0))
    return sum(largest.values()) if largest else Gap("not_applicable", NOT_HERE)


MEASURES: Mapping[str, Callable[[Trace], float | Gap]] = {
    "cost.tokens_per_second": _tokens_per_second,
    "cost.load_seconds": lambda trace: _sum_of_models(trace, lambda use: use.load_s),
    "cost.memory_mb": lambda trace: _sum_of_models(trace, lambda use: use.memory_mb),
    "cost.joules": _joules,
}


def build(name: str, info: MetricInfo, argument: str, tools: Tools) -> Metric:
    """Return the cost called `name`; `argument` is the stage, where it is one stage's."""
    if name in MEASURES:
        return TraceMetric(name, info.needs, MEASURES[name], is_traced=False)
    measure = _COMPUTE[name.removesuffix(f".{argument}") if argument else name]
    return TraceMetric(name, info.needs, partial(_total, measure=measure, stage=argument), is_traced=False)


def _total(trace: Trace, measure: Callable[[StageRecord], float], stage: str) -> float | Gap:
    records = [record for record in trace.stages if not stage or record.stage == stage]
    if records:
        return sum(measure(record) for record in records)
    if trace.failure is not None:
        return Gap("failed", f"{trace.failure.stage} failed: {trace.failure.reason}")
    return Gap("not_applicable", f"stage {stage} has not run" if stage else "no stage has run")


FAMILY = Family(INFOS, build)
