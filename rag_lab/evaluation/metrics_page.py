"""The table of all metrics, as a page of the site shows it."""

from __future__ import annotations

from rag_lab.evaluation.metric import MetricInfo
from rag_lab.evaluation.registry import describe

_HEAD = ("| metric | what it is | needs | range |", "|---|---|---|---|")


def metrics_table() -> str:
    """Return a Markdown table with one row a metric, in the order of `describe`."""
    return "\n".join((*_HEAD, *(_row(info) for info in describe()))) + "\n"


def _row(info: MetricInfo) -> str:
    needs = ", ".join(sorted(info.needs)) or "-"
    upper = "and up" if info.high is None else f"to {info.high:g}"
    better = "" if info.higher_is_better else ", lower is better"
    return f"| `{info.name}` | {info.sentence} | {needs} | {info.low:g} {upper}{better} |"
