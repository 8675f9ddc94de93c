"""Metric names to metrics: `room.measure`, with a cut-off where the measure takes one (`retrieval.ndcg@10`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from rag_lab.errors import ConfigError, unknown_name
from rag_lab.evaluation.metric import Metric, MetricInfo, Tools

MAX_K = 1000

# Each room is a module with INFOS (its metrics) and build(name, info, argument, tools).
_ROOMS = {
    "retrieval": "rag_lab.evaluation.retrieval",
    "ragas": "rag_lab.evaluation.ragas_metrics",
    "citations": "rag_lab.evaluation.citations",
    "answer": "rag_lab.evaluation.answers",
    "cost": "rag_lab.evaluation.costs",
}


@dataclass(frozen=True, slots=True)
class ParsedName:
    """A metric name taken apart; `argument` is the cut-off or the stage, or empty."""

    name: str
    room: str
    info: MetricInfo
    argument: str = ""


def describe() -> list[MetricInfo]:
    """Return every metric, by room; users fill in `@k` and `<stage>`."""
    return [info for room in _ROOMS for info in _module(room).INFOS]


def metric_names() -> list[str]:
    """Return the names of `describe`, sorted."""
    return sorted(info.name for info in describe())


def parse_name(name: str) -> ParsedName:
    """Take a metric name apart.

    Raises:
        ConfigError: if no metric has this name, or its cut-off is missing, superfluous or out of range.
    """
    for info in describe():
        match = re.fullmatch(_pattern(info), name)
        if match:
            argument = (match.groups() or ("",))[0]
            _check_cutoff(name, info, argument)
            return ParsedName(name, info.name.split(".")[0], info, argument)
    raise ConfigError(_unknown(name))


def build_metric(name: str, tools: Tools) -> Metric:
    """Return the metric called `name`; no model is loaded yet.

    Raises:
        ConfigError: as `parse_name`.
    """
    parsed = parse_name(name)
    metric: Metric = _module(parsed.room).build(name, parsed.info, parsed.argument, tools)
    return metric


def problems(names: Iterable[str], has_judge: bool, has_embedder: bool = True, language: str = "") -> list[str]:
    """Return everything that is wrong with a list of metric names, one sentence each; empty where all is well."""
    names = list(names)
    found = [f"Metric {name!r} is named {n} times; name it once." for name, n in Counter(names).items() if n > 1]
    for name in dict.fromkeys(names):
        try:
            info = parse_name(name).info
        except ConfigError as error:
            found.append(str(error))
            continue
        if language and not info.translatable:
            found.append(f"RAGAs cannot put the prompts of {name!r} into {language}: leave out the metric or the language.")
        if "judge" in info.needs and not has_judge:
            found.append(
                f"Metric {name!r} needs a judge and none is set: set `judge` to provider:name, or leave it out."
            )
        if "embeddings" in info.needs and not has_embedder:
            found.append(f"Metric {name!r} needs an embedding model and none was given: pass one, or leave it out.")
    return found


def _module(room: str) -> ModuleType:
    return import_module(_ROOMS[room])


def _pattern(info: MetricInfo) -> str:
    return re.escape(info.name).replace("@k", r"@(\d+)").replace("<stage>", r"([a-z0-9_]+)")


def _check_cutoff(name: str, info: MetricInfo, argument: str) -> None:
    if info.name.endswith("@k") and not 1 <= int(argument) <= MAX_K:
        raise ConfigError(f"Metric {name!r} has an impossible cut-off: allowed is a number from 1 to {MAX_K}.")


def _unknown(name: str) -> str:
    stem, at, cutoff = name.partition("@")
    names = metric_names()
    if f"{stem}@k" in names:
        given = f"{cutoff!r} is none" if at else "none is given"
        return f"Metric {name!r} needs a cut-off from 1 to {MAX_K} and {given}: write {stem}@10, for instance."
    if at and stem in names:
        return f"Metric {name!r} takes no cut-off: write {stem}."
    return unknown_name("metric", name, names)
