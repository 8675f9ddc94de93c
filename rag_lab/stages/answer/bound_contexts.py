"""Contexts that bound what retrieval can bring a reader: nothing, the labelled evidence, or the whole of its file.

What retrieval found is measured all the same; it is not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.corpus.page_starts import PageStarts
from rag_lab.records import Chunk, Document, Evidence, Passage, Question, Trace
from rag_lab.stages.answer.context_budget import ContextBudget, Wanted, budget_of
from rag_lab.stages.parts import Parts
from rag_lab.stages.stage import Outcome

NO_LABEL = "no evidence is labelled that the asker may see"


@dataclass(frozen=True)
class NoContext:
    """Give the reader nothing, so that it answers out of what it knows: a closed book."""

    name: ClassVar[str] = "context"
    reads: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ("passages",)
    batch_size: ClassVar[int] = 1000
    costly: ClassVar[bool] = False

    def identity(self) -> Mapping[str, Any]:
        """Nothing but the version."""
        return {"version": 1, "context": "none"}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Set no passage."""
        return [Outcome({"passages": ()}, reason="the book is closed", seconds=0.0) for _ in traces]


@dataclass(frozen=True)
class _OfEvidence:
    """What reads the labels of a question, of files that its asker may see."""

    index: CorpusIndex
    budget: ContextBudget

    name: ClassVar[str] = "context"
    reads: ClassVar[tuple[str, ...]] = ("question.evidence", "question.may_see", "question.namespace")
    writes: ClassVar[tuple[str, ...]] = ("passages",)
    batch_size: ClassVar[int] = 32
    costly: ClassVar[bool] = True
    context: ClassVar[str]

    def identity(self) -> Mapping[str, Any]:
        """Index (for the texts), the model that counts, and the budgets."""
        return {"version": 3, "context": self.context, "index": self.index.digest, **self.budget.identity()}

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Assemble each trace's context."""
        return [self._assemble(self._labelled(trace.question)) for trace in traces]

    def _labelled(self, question: Question) -> list[Evidence]:
        return [one for one in question.evidence if self.index.is_visible(one.source, question)]

    def _assemble(self, evidence: Sequence[Evidence]) -> Outcome:
        passages, n = self._passages(evidence)
        reason = self.budget.left_out(n, passages) if evidence else NO_LABEL
        return Outcome({"passages": tuple(passages)}, reason=reason)

    def _passages(self, evidence: Sequence[Evidence]) -> tuple[list[Passage], int]:
        """Return what fits the budget, and of how many passages."""
        raise NotImplementedError


class GoldContext(_OfEvidence):
    """Give the reader the parents that hold the labelled evidence, each an equal share of the budget.

    A parent that does not fit is cut to a window around the quote. Evidence without a quote stands for its page, and
    evidence without a page for its file.
    """

    context: ClassVar[str] = "gold"

    def _passages(self, evidence: Sequence[Evidence]) -> tuple[list[Passage], int]:
        wanted: dict[str, Wanted] = {}
        for one in evidence:
            for document in self._documents(one):
                for parent in self._parents(document, one):
                    wanted.setdefault(parent.chunk_id, _around(parent, one, self.index.page_starts(parent.source)))
        return self.budget.shared([*wanted.values()]), len(wanted)

    def _documents(self, evidence: Evidence) -> list[Document]:
        found = self.index.documents_of(evidence.source)
        return [document for document in found if evidence.page in (None, document.page)]

    def _parents(self, document: Document, evidence: Evidence) -> list[Chunk]:
        """Return the shortest parent that holds the quote, else those that hold some of it; all without a quote."""
        parents = self.index.parents_of(document)
        if evidence.start is None or evidence.end is None:
            return parents
        start, end = evidence.start, evidence.end
        whole = [parent for parent in parents if parent.start <= start and parent.end >= end]
        if whole:  # parents of neighbouring children overlap
            return [min(whole, key=lambda parent: (parent.end - parent.start, parent.start))]
        return [parent for parent in parents if parent.start < end and parent.end > start]


class DocumentContext(_OfEvidence):
    """Give the reader the files that hold the labelled evidence, page by page, in their order.

    Where they do not fit the budget, what is left out are the pages that stand furthest from those of the evidence.
    """

    context: ClassVar[str] = "document"

    def _passages(self, evidence: Sequence[Evidence]) -> tuple[list[Passage], int]:
        sources = dict.fromkeys(one.source for one in evidence)
        pages = [page for source in sources for page in self._pages(source, evidence)]
        nearest = sorted(range(len(pages)), key=lambda place: pages[place][0])
        kept = self.budget.in_turn([pages[place][1] for place in nearest])
        while not self.budget.holds(in_order := _in_order(nearest, kept)):
            kept.pop()  # numbers are counted with the texts, and change places with them
        return in_order, len(pages)

    def _pages(self, source: str, evidence: Sequence[Evidence]) -> list[tuple[int, Wanted]]:
        """Return the pages of a file, each with how many pages it is from the nearest with evidence."""
        documents = self.index.documents_of(source)
        labels = {one.page: one for one in evidence if one.source == source}
        starts = self.index.page_starts(source)
        labelled = [place for place, document in enumerate(documents) if document.page in labels] or [0]
        return [
            (min(abs(place - other) for other in labelled), _page(document, labels.get(document.page), starts))
            for place, document in enumerate(documents)
        ]


def _in_order(places: Sequence[int], passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages by their places in the files, numbered anew."""
    pairs = sorted(zip(places, passages, strict=False), key=lambda pair: pair[0])
    return [replace(passage, number=number) for number, (_, passage) in enumerate(pairs, start=1)]


def _around(parent: Chunk, evidence: Evidence, starts: PageStarts) -> Wanted:
    whole = Passage(0, parent.chunk_id, parent.source, parent.page, parent.start, parent.end, parent.text)
    return Wanted(whole, _middle(evidence) - parent.start, starts)


def _page(document: Document, evidence: Evidence | None, starts: PageStarts) -> Wanted:
    """Return a whole page, under the id that it has as a parent."""
    source, page, text = document.source, document.page, document.text
    parent_id = f"{source}#0-{len(text)}" if page is None else f"{source}#p{page}"
    whole = Passage(0, parent_id, source, page, 0, len(text), text)
    return Wanted(whole, 0 if evidence is None else _middle(evidence), starts)


def _middle(evidence: Evidence) -> int:
    """Return the middle of the quote; the beginning where there is none."""
    return 0 if evidence.start is None or evidence.end is None else (evidence.start + evidence.end) // 2


def no_context(_: Parts) -> NoContext:
    """Return the stage that gives nothing to read."""
    return NoContext()


def gold(parts: Parts) -> GoldContext:
    """Return the stage that gives the labelled evidence."""
    return GoldContext(parts.index, budget_of(parts))


def document(parts: Parts) -> DocumentContext:
    """Return the stage that gives the files of the labelled evidence."""
    return DocumentContext(parts.index, budget_of(parts))
