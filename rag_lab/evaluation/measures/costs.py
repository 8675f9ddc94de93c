"""What an answer cost when it was first computed, also where it was remembered since: variants stay comparable."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rag_lab.evaluation.measures.machine_costs import MEASURES
from rag_lab.evaluation.metric import Family, Gap, Metric, MetricInfo, Needs, Tools, TraceMetric
from rag_lab.records import StageRecord, Trace

_NEEDS: Needs = frozenset()


def _info(name: str, sentence: str, higher_is_better: bool = False) -> MetricInfo:
    return MetricInfo(name, sentence, _NEEDS, high=None, higher_is_better=higher_is_better, is_cost=True)


INFOS = (
    _info(
        "cost.seconds",
        "Seconds of all stages together, each as first computed, shared embeddings and pair scores included.",
    ),
    _info(
        "cost.seconds.<stage>",
        "Seconds of one stage, named as on the trace, as first computed; what it shares is included.",
    ),
    _info("cost.tokens", "Tokens that models read and wrote for the question, all stages together."),
    _info("cost.thinking_tokens", "Of the tokens that models wrote for the question, those of their thinking."),
    _info("cost.usd", "US dollars that the providers charged, all stages together."),
    _info(
        "cost.tokens_per_second",
        "Tokens written a second by the chat models that were asked, the reading of their prompts included.",
        higher_is_better=True,
    ),
    _info("cost.load_seconds", "Seconds that the chat models of this machine took to load, once a process."),
    _info(
        "cost.memory_mb",
        "MiB by which the process grew for the chat models of this machine: their weights, cache and most for a call.",
    ),
    _info(
        "cost.joules",
        "Joules that the machine took while its chat models were asked (NVIDIA's meters and RAPL, all devices).",
    ),
)


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


_COMPUTE: dict[str, Callable[[StageRecord], float]] = {
    "cost.seconds": lambda record: record.seconds,
    "cost.tokens": lambda record: record.tokens_in + record.tokens_out,
    "cost.thinking_tokens": lambda record: record.thinking_tokens,
    "cost.usd": lambda record: record.cost_usd,
}


FAMILY = Family(INFOS, build)
