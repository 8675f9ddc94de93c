"""What an asker was shown and may not see: whose the files are is read anew, by nobody whom the searches rely on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_lab.evaluation.metric import Family, Gap, Metric, MetricInfo, Needs, Tools, Visible, find_gap, scored
from rag_lab.records import Score, Trace

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


@dataclass(frozen=True)
class AccessLeak:
    """The share of the files on a trace that `visible` closes to its asker."""

    name: str
    visible: Visible | None
    needs: Needs = _NEEDS

    def identity(self) -> Mapping[str, Any]:
        """Return the name and the version."""
        return {"metric": self.name, "version": 1}

    def score(self, traces: Sequence[Trace]) -> list[Score]:
        """Return one score for each trace, in order; 0 where nothing was shown."""
        return [scored(trace, self.name, find_gap(trace, self.needs) or self._share(trace)) for trace in traces]

    def _share(self, trace: Trace) -> float | Gap:
        if self.visible is None:
            return _NO_RULES
        shown = set(_sources(trace))
        closed = [source for source in shown if not self.visible(trace.question, source)]
        return len(closed) / len(shown) if shown else 0.0


def _sources(trace: Trace) -> Iterator[str]:
    """Yield the file of everything that the trace shows."""
    lists = (*trace.hits.values(), trace.base_hits, trace.candidates, trace.reranked, trace.ranked)
    yield from (hit.source for hits in lists for hit in hits)
    yield from (passage.source for passage in trace.passages)
    yield from (citation.source for citation in (trace.answer.citations if trace.answer else ()))
    yield from (source for item in trace.question.evidence for source in (item.source, *item.copies))


def build(name: str, info: MetricInfo, argument: str, tools: Tools) -> Metric:
    """Return the measure."""
    return AccessLeak(name, tools.visible)


FAMILY = Family(INFOS, build)
