"""What cannot be compared: rankings of different depth, and metrics that read nothing that a change touches."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_lab._kit.wording import counted
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.config import PipelineConfig
from rag_lab.evaluation.cutoff_caveats import ranks_seen, unit_of
from rag_lab.evaluation.registry import cutoff, text_budget

_NOT_COMPARED = "not compared: "


def not_compared(metric: str, configs: Mapping[Any, PipelineConfig], variants: Iterable[Any]) -> str:
    """Return why variants are not compared in a metric, or "": one whose pipeline is not known is compared."""
    seen = {ranks_seen(metric, configs[variant]) for variant in variants if variant in configs}
    depths = sorted(depth for depth in seen if depth is not None)
    if len(depths) < 2:
        return ""
    return f"{_NOT_COMPARED}{metric} sees {depths[0]} ranks of one and {depths[-1]} of the other"


def not_comparable_sentence(verdicts: Sequence[str]) -> str:
    """Say first that half of the variants, or more, are not compared with the baseline; "" where fewer are.

    `verdicts`: of each other variant, what `not_compared` or `withheld` returns, or anything else that is said of it.
    """
    reasons = [one.removeprefix(_NOT_COMPARED) for one in verdicts if one.startswith(_NOT_COMPARED)]
    if not reasons or 2 * len(reasons) <= len(verdicts):
        return ""
    return f"{len(reasons)} of {len(verdicts) + 1} variants cannot be compared with the baseline: {reasons[0]}."


def withheld(tables: RunTables, metric: str, variants: Iterable[str]) -> str:
    """Return why variants of a run are not compared in a metric, by their settings and by what they ranked; or "".

    Of labels that name files, or pages, a ranking of smaller texts holds fewer than one of larger texts that is as
    long. Evidence that stands where only the latter has ranks is no merit of its order.
    """
    variants = list(variants)
    if reason := not_compared(metric, tables.pipelines, variants):
        return reason
    units = {unit_of(tables.pipelines[variant]) for variant in variants if variant in tables.pipelines}
    if len(units) < 2 or not metric.startswith("retrieval.") or text_budget(metric) is not None:
        return ""
    rankings = [tables.counted[variant] for variant in variants if variant in tables.counted]
    keys = set.intersection(*(set(one) for one in rankings)) if rankings else set()
    beyond = []
    for shown in ([one[key] for one in rankings] for key in keys):
        end = min(one.n for one in shown)
        first = min((r for one in shown for r in one.ranks if r is not None and r > end), default=math.inf)
        if first <= (cutoff(metric) or math.inf):
            beyond.append(first)  # the first rank of evidence behind the end of the shortest ranking
    if not beyond:
        return ""
    k = min(beyond) - 1
    up_to = f"a cut-off of {k:g} or " if k else ""
    return (
        f"{_NOT_COMPARED}labels name files or pages, of which one ranking holds more than the other, and {metric} "
        f"finds evidence of {counted(len(beyond), 'question')} behind the end of the shorter; {up_to}a larger "
        "rerank.final_k compares them"
    )


def unchanged_fields(tables: RunTables, variant: str, against: str, metric: str) -> str:
    """Return the fields that a metric reads where two variants have them all alike, else "".

    A metric that reads nothing that a change touches is blind to it; that all scores are equal is then no finding.
    """
    info = tables.run.metric(metric)
    ours, theirs = tables.traces.get(variant, []), tables.traces.get(against, [])
    if info is None or info.is_cost or not info.reads or len(ours) != len(theirs):
        return ""
    names = sorted(info.reads)
    is_same = all(getattr(a, name) == getattr(b, name) for a, b in zip(ours, theirs, strict=True) for name in names)
    return " and ".join({"ranked": "ranking"}.get(name, name) for name in names) if is_same else ""
