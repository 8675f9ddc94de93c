"""The stage that searches: by the question and its other phrasings, or by the hypothetical document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rag_lab.access import allowed_labels
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.records import Hit, Trace
from rag_lab.stages.retrieval.fusion import reciprocal_rank_fusion
from rag_lab.stages.retrieval.searcher import Searcher
from rag_lab.stages.stage import Outcome

HYDE = "hyde"  # the search by hypothetical document
_ACCESS = ("question.may_see", "question.namespace")


@dataclass(frozen=True)
class Search:
    """Find the k best units for each trace, among those that its asker may see.

    They become the trace's `hits` of this search. Those of several phrasings are merged by reciprocal rank; `HYDE`
    searches the hypothetical document alone.
    """

    searcher: Searcher
    index: CorpusIndex
    k: int
    search: str

    batch_size: ClassVar[int] = 256
    costly: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """`search_` and the name of the search; that by hypothetical document is `retrieve_hyde`."""
        return "retrieve_hyde" if self.search == HYDE else f"search_{self.search}"

    @property
    def reads(self) -> tuple[str, ...]:
        """What is searched, and what the asker may see."""
        return (*(("hypothetical",) if self.search == HYDE else ("search_query", "phrasings")), *_ACCESS)

    @property
    def writes(self) -> tuple[str, ...]:
        """The list that is filled."""
        return (f"hits.{self.search}",)

    def identity(self) -> Mapping[str, Any]:
        """The search, and k."""
        return {"version": 3, "searcher": self.searcher.identity(), "k": self.k}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Search all texts of the batch in one call."""
        texts = [self._texts(trace) for trace in traces]
        labels = self.index.labels if any(texts) else frozenset()
        allowed = [
            allowed_labels(labels, trace.question) for trace, own in zip(traces, texts, strict=True) for _ in own
        ]
        flat = [text for own in texts for text in own]
        found = iter(self.searcher.search(flat, self.k, allowed) if flat else [])
        return [self._outcome(own, found) for own in texts]

    def _texts(self, trace: Trace) -> list[str]:
        texts = [trace.hypothetical] if self.search == HYDE else [trace.search_query, *trace.phrasings]
        return [text for text in texts if text]

    def _outcome(self, texts: Sequence[str], found: Iterator[list[Hit]]) -> Outcome:
        lists = [next(found) for _ in texts]
        if not lists:
            return Outcome({self.writes[0]: ()}, reason="nothing to search by", seconds=0.0)
        hits = lists[0] if len(lists) == 1 else reciprocal_rank_fusion(lists, self.k)
        return Outcome({self.writes[0]: tuple(hits)})
