"""Metric names to metrics: `room.measure`, with a cut-off where the measure takes one (`retrieval.ndcg@10`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from rag_lab.errors import ConfigError, unknown_name
from rag_lab.evaluation.ir_names import MAX_K, ir_cutoff, ir_measure
from rag_lab.evaluation.metric import Metric, MetricInfo, Tools

# Each room is a module with INFOS (its metrics) and build(name, info, argument, tools).
_ROOMS = {
    "retrieval": "rag_lab.evaluation.measures.retrieval",
    "ragas": "rag_lab.evaluation.ragas.metrics",
    "citations": "rag_lab.evaluation.measures.citations",
    "answer": "rag_lab.evaluation.measures.answers",
    "cost": "rag_lab.evaluation.measures.costs",
}
# Every name of ir_measures has a capital letter or a Greek one before parameters and cut-off, and none of ours has.
_IR_MEASURE = r"(\w*[A-Zα-ω]\w*(?:\(.*\))?(?:@.+)?)"


@dataclass(frozen=True, slots=True)
class ParsedName:
    """A metric name taken apart; `argument` is the cut-off, the stage or ir_measures' name, or empty."""

    name: str
    room: str
    info: MetricInfo
    argument: str = ""


def describe() -> list[MetricInfo]:
    """Return every metric, by room; users fill in `@k`, `<stage>` and `<measure>`."""
    return [info for room in _ROOMS for info in _module(room).INFOS]


def metric_names() -> list[str]:
    """Return the names of `describe`, sorted."""
    return sorted(info.name for info in describe())


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in a list separated by commas; commas within parentheses belong to a name.

    Example:
        >>> split_names("retrieval.mrr@10, retrieval.RBP(p=0.8, rel=1)")
        ('retrieval.mrr@10', 'retrieval.RBP(p=0.8, rel=1)')
    """
    return tuple(name.strip() for name in re.split(r",(?![^()]*\))", text) if name.strip())


def parse_name(name: str) -> ParsedName:
    """Take a metric name apart.

    Raises:
        ConfigError: if no metric has this name, or its cut-off is missing, superfluous or out of range.
    """
    for info in describe():
        match = re.fullmatch(_pattern(info), name)
        if match:
            argument = (match.groups() or ("",))[0]
            _check_argument(name, info, argument)
            return ParsedName(name, info.name.split(".")[0], info, argument)
    raise ConfigError(_unknown(name))


def find_info(name: str) -> MetricInfo | None:
    """Return what the metric called `name` is; None for one of an older or newer version, as a run folder may hold."""
    try:
        return parse_name(name).info
    except ConfigError:
        return None


def cutoff(name: str) -> int | None:
    """Return how many ranks the metric called `name` looks at; None where it has no cut-off, or nobody knows it."""
    try:
        parsed = parse_name(name)
    except ConfigError:
        return None
    if parsed.info.name.endswith("@k"):
        return int(parsed.argument)
    return ir_cutoff(parsed.argument) if parsed.info.name.endswith("<measure>") else None


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
            found.append(
                f"RAGAs cannot put the prompts of {name!r} into {language}: leave out the metric or the language."
            )
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
    fixed = re.escape(info.name).replace("@k", r"@(\d+)").replace("<stage>", r"([a-z0-9_]+)")
    return fixed.replace("<measure>", _IR_MEASURE)


def _check_argument(name: str, info: MetricInfo, argument: str) -> None:
    if info.name.endswith("<measure>"):
        ir_measure(name, argument)
    elif info.name.endswith("@k") and not 1 <= int(argument) <= MAX_K:
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
