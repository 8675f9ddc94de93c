"""The stage that searches by the question and its other phrasings, and what every search does with what it found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from rag_lab._kit.wording import counted
from rag_lab.access import allowed_labels
from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.records import Hit, Trace
from rag_lab.stages.retrieval.fusion import reciprocal_rank_fusion
from rag_lab.stages.retrieval.mmr import SearchMmr
from rag_lab.stages.retrieval.searcher import DenseSearcher, Searcher
from rag_lab.stages.stage import Outcome

ACCESS = ("question.may_see", "question.namespace")


@dataclass(frozen=True)
class Search:
    """Find the k best units for each trace, among those that its asker may see.

    They become the trace's `hits` of this search. Those of several phrasings are merged by reciprocal rank. Hits below
    `min_score` are left out of each list, and `mmr` chooses among what is left of more than k.
    """

    searcher: Searcher
    index: CorpusIndex
    k: int
    search: str
    min_score: float | None = None
    mmr: SearchMmr | None = None

    batch_size: ClassVar[int] = 256
    costly: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """`search_` and the name of the search."""
        return f"search_{self.search}"

    @property
    def reads(self) -> tuple[str, ...]:
        """What is searched, and what the asker may see."""
        return ("search_query", "phrasings", *ACCESS)

    @property
    def writes(self) -> tuple[str, ...]:
        """The list that is filled."""
        return (f"hits.{self.search}",)

    def identity(self) -> Mapping[str, Any]:
        """The search, k, the threshold, and what is chosen among what was found."""
        return {"version": 4, "searcher": self.searcher.identity(), "k": self.k, **kept_identity(self)}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Search all texts of the batch in one call."""
        texts = [self._texts(trace) for trace in traces]
        labels = self.index.labels if any(texts) else frozenset()
        allowed = [
            allowed_labels(labels, trace.question) for trace, own in zip(traces, texts, strict=True) for _ in own
        ]
        flat = [text for own in texts for text in own]
        found = self.searcher.search(flat, n_wanted(self), allowed) if flat else []
        lists = iter(kept(self, found, self.search))
        return [self._outcome(own, lists) for own in texts]

    def _texts(self, trace: Trace) -> list[str]:
        return [text for text in (trace.search_query, *trace.phrasings) if text]

    def _outcome(self, texts: Sequence[str], found: Iterator[Sequence[Hit]]) -> Outcome:
        lists = [next(found) for _ in texts]
        if not lists:
            return Outcome({self.writes[0]: ()}, reason="nothing to search by", seconds=0.0)
        hits = lists[0] if len(lists) == 1 else reciprocal_rank_fusion(lists, self.k)
        if not isinstance(self.searcher, DenseSearcher):
            return Outcome({self.writes[0]: tuple(hits)})
        unread, reason = unread_told(self.searcher, self.searcher.unread_of_texts(texts), hits)
        return Outcome({self.writes[0]: tuple(hits)}, reason=reason, truncated_tokens=unread)


def unread_told(searcher: DenseSearcher, own: int, hits: Sequence[Hit]) -> tuple[int, str]:
    """Return how many tokens had no effect, and in words: `own` of what is searched by, and those of the children."""
    cut = [n for n in searcher.unread_of_hits(hits) if n]
    told = [f"{counted(own, 'token')} of what is searched by were not read"] if own else []
    told += [f"of {len(cut)} of {len(hits)} chunks found, {sum(cut):,} tokens were never embedded"] if cut else []
    return own + sum(cut), "; ".join(told)


class Keeps(Protocol):
    """A search that leaves out what scores too low, and may choose among more than it hands on."""

    @property
    def k(self) -> int:
        """How many units it hands on."""

    @property
    def min_score(self) -> float | None:
        """The threshold."""

    @property
    def mmr(self) -> SearchMmr | None:
        """What chooses."""


def n_wanted(search: Keeps) -> int:
    """Return how many units are to be found, so that there is something to choose from."""
    return search.k if search.mmr is None else max(search.k, search.mmr.fetch_k)


def kept(search: Keeps, lists: Sequence[Sequence[Hit]], step: str) -> Sequence[Sequence[Hit]]:
    """Return of each list of found units what the search hands on."""
    enough = [scoring(hits, search.min_score) for hits in lists]
    return enough if search.mmr is None else search.mmr.choose(enough, search.k, step)


def kept_identity(search: Keeps) -> dict[str, Any]:
    """Return what changes `kept` beside k, without what is off."""
    least = {} if search.min_score is None else {"min_score": search.min_score}
    return least if search.mmr is None else {**least, "mmr": dict(search.mmr.identity())}


def scoring(hits: Sequence[Hit], least: float | None) -> Sequence[Hit]:
    """Return the hits whose score is not below `least`; all where there is no such threshold."""
    return hits if least is None else [hit for hit in hits if hit.score >= least]
