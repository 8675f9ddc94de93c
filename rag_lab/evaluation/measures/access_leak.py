"""What an asker was shown and may not see: whose the files are is read anew, by nobody whom the searches rely on."""

from functools import partial
from itertools import chain
from typing import Any

from rag_lab.evaluation.metric import Family, Gap, Metric, MetricInfo, Needs, Tools, TraceMetric, Visible
from rag_lab.records import Trace

_NEEDS: Needs = frozenset({"ranking", "rights"})
_NO_RULES = Gap("failed", "nothing says whose the files are: give `visible`, as a sweep does from attributes.yaml")

INFOS = (
    MetricInfo(
        "access.leak",
        "Share of the files shown in any list of hits, in the context or as a citation that the asker may not see.",
        _NEEDS,
        higher_is_better=False,
        fields=frozenset({"ranked"}),
    ),
)


def _share_closed(trace: Trace, visible: Visible | None) -> float | Gap:
    """Return the share of the files on a trace that `visible` closes to its asker; 0 where nothing was shown."""
    if visible is None:
        return _NO_RULES
    lists = (*trace.hits.values(), trace.base_hits, trace.candidates, trace.reranked, trace.ranked)
    items: tuple[Any, ...] = (*chain(*lists), *trace.passages, *(trace.answer.citations if trace.answer else ()))
    evidence = trace.question.evidence
    shown = {one.source for one in (*items, *evidence)} | {copy for item in evidence for copy in item.copies}
    return sum(not visible(trace.question, source) for source in shown) / len(shown) if shown else 0.0


def build(name: str, info: MetricInfo, argument: str, tools: Tools) -> Metric:
    """Return the measure."""
    return TraceMetric(name, info.needs, partial(_share_closed, visible=tools.visible), is_traced=False)


FAMILY = Family(INFOS, build)
