"""Contexts that bound what retrieval can bring a reader: nothing, the labelled evidence, or the whole of its file.

What retrieval found is measured all the same; it is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from rag_lab.corpus.index.corpus_index import CorpusIndex
from rag_lab.corpus.spans import PageStarts
from rag_lab.records import CLOSED_BOOK, NO_LABEL, OF_LABELS, Chunk, Document, Evidence, Passage, Trace
from rag_lab.stages.answer.context import ContextBudget, Wanted, budget_of
from rag_lab.stages.parts import Parts
from rag_lab.stages.stage import BuiltInStage, Outcome
from rag_lab.stores.analyzer import VERSION as WORDS_VERSION
from rag_lab.stores.analyzer import terms

NEAREST = "of a file or page of several passages those nearest to question and answers"
_PIECE = 400  # characters of the pieces of a passage; a passage without a quote is cut around the nearest


@dataclass(frozen=True)
class NoContext(BuiltInStage):
    """Give the reader nothing, so that it answers out of what it knows: a closed book."""

    name = "context"
    reads = ()
    writes = ("passages",)

    def outcome(self, trace: Trace) -> Outcome:
        """Set no passage."""
        return Outcome({"passages": ()}, reason=CLOSED_BOOK, seconds=0.0)


@dataclass(frozen=True)
class _OfEvidence(BuiltInStage):
    """What reads the labels of a question, of files that its asker may see.

    A label without a quote may name several passages. The nearest are then taken for the evidence: those that score
    highest by BM25 among them, asked the question and its answers.
    """

    index: CorpusIndex
    budget: ContextBudget

    VERSION = 4
    WORDS = WORDS_VERSION
    name = "context"
    reads = (
        "question.text",
        "question.answers",
        "question.evidence",
        "question.may_see",
        "question.namespace",
    )
    writes = ("passages",)
    batch_size = 32
    costly = True

    def outcome(self, trace: Trace) -> Outcome:
        """Assemble the context of one trace."""
        question = trace.question
        evidence = [one for one in question.evidence if self.index.is_visible(one.source, question)]
        if not evidence:
            return Outcome({"passages": ()}, reason=NO_LABEL)
        passages, n, is_guessed = self._passages(evidence, " ".join((question.text, *question.answers)))
        reasons = (OF_LABELS, NEAREST if is_guessed else "", self.budget.left_out(n, passages))
        return Outcome({"passages": tuple(passages)}, reason="; ".join(filter(None, reasons)))

    def _passages(self, evidence: Sequence[Evidence], asked: str) -> tuple[list[Passage], int, bool]:
        """Return what fits the budget, of how many passages, and whether the nearest were taken."""
        raise NotImplementedError


class GoldContext(_OfEvidence):
    """Give the reader the parents that hold the labelled evidence, each an equal share of the budget.

    A parent that does not fit is cut to a window around the quote. Where a label names several parents, the nearest
    stand whole, in turn with those of the other labels, until the budget is full.
    """

    def _passages(self, evidence: Sequence[Evidence], asked: str) -> tuple[list[Passage], int, bool]:
        wanted: dict[str, Wanted] = {}
        several: list[list[Chunk]] = []
        for one in evidence:
            parents = [parent for document in self._documents(one) for parent in self._parents(document, one)]
            if one.start is None and len(parents) > 1:
                several.append([parents[place] for place in _nearest([parent.text for parent in parents], asked)])
                continue
            for parent in parents:
                wanted.setdefault(parent.chunk_id, self._around(parent, one, asked))
        if not several:
            return self.budget.shared([*wanted.values()]), len(wanted), False
        for parent in (parent for turn in zip_longest(*several) for parent in turn if parent is not None):
            if parent.chunk_id not in wanted:
                wanted[parent.chunk_id] = self._around(parent, None, asked)
        return self.budget.in_turn([*wanted.values()]), len(wanted), True

    def _documents(self, evidence: Evidence) -> list[Document]:
        found = self.index.chunks.documents(evidence.source)
        return [document for document in found if evidence.page in (None, document.page)]

    def _parents(self, document: Document, evidence: Evidence) -> list[Chunk]:
        """Return the shortest parent that holds the quote, else those that hold some of it; all without a quote."""
        parents = self.index.chunks.parents(document.source, document.page)
        if evidence.start is None or evidence.end is None:
            return parents
        start, end = evidence.start, evidence.end
        whole = [parent for parent in parents if parent.start <= start and parent.end >= end]
        if whole:  # parents of neighbouring children overlap
            return [min(whole, key=lambda parent: (parent.end - parent.start, parent.start))]
        return [parent for parent in parents if parent.start < end and parent.end > start]

    def _around(self, parent: Chunk, evidence: Evidence | None, asked: str) -> Wanted:
        whole = Passage(0, parent.chunk_id, parent.source, parent.page, parent.start, parent.end, parent.text)
        return Wanted(whole, _middle(whole, evidence, asked), self.index.page_starts(parent.source))


class DocumentContext(_OfEvidence):
    """Give the reader the files that hold the labelled evidence, page by page, in their order.

    Where they do not fit the budget, what is left out are the pages that stand furthest from those of the evidence.
    """

    def _passages(self, evidence: Sequence[Evidence], asked: str) -> tuple[list[Passage], int, bool]:
        pages: list[tuple[int, Wanted]] = []
        is_guessed = False
        for source in dict.fromkeys(one.source for one in evidence):
            documents = self.index.chunks.documents(source)
            labels = {one.page: one for one in evidence if one.source == source}
            labelled = [place for place, document in enumerate(documents) if document.page in labels]
            if not labelled:
                labelled, is_guessed = _nearest([document.text for document in documents], asked)[:1], True
            starts = self.index.page_starts(source)
            pages += [
                (min(abs(place - one) for one in labelled), _page(document, labels.get(document.page), asked, starts))
                for place, document in enumerate(documents)
            ]
        nearest = sorted(range(len(pages)), key=lambda place: pages[place][0])
        kept = self.budget.in_turn([pages[place][1] for place in nearest])
        while not self.budget.holds(in_order := _in_order(nearest, kept)):
            kept.pop()  # numbers are counted with the texts, and change places with them
        return in_order, len(pages), is_guessed


def _in_order(places: Sequence[int], passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages by their places in the files, numbered anew."""
    pairs = sorted(zip(places, passages, strict=False), key=lambda pair: pair[0])
    return [replace(passage, number=number) for number, (_, passage) in enumerate(pairs, start=1)]


def _page(document: Document, evidence: Evidence | None, asked: str, starts: PageStarts) -> Wanted:
    """Return a whole page, under the id that it has as a parent."""
    source, page, text = document.source, document.page, document.text
    parent_id = f"{source}#0-{len(text)}" if page is None else f"{source}#p{page}"
    whole = Passage(0, parent_id, source, page, 0, len(text), text)
    return Wanted(whole, _middle(whole, evidence, asked), starts)


def _middle(passage: Passage, evidence: Evidence | None, asked: str) -> int:
    """Return the middle of the quote in a passage; without one that of the piece nearest to what is asked."""
    if evidence is not None and evidence.start is not None and evidence.end is not None:
        return (evidence.start + evidence.end) // 2 - passage.start
    pieces = [passage.text[start : start + _PIECE] for start in range(0, len(passage.text), _PIECE)]
    return _PIECE * _nearest(pieces, asked)[0] + _PIECE // 2


def _nearest(texts: Sequence[str], asked: str) -> list[int]:
    """Return the places of `texts` by BM25 among them, best first, ties in order."""
    import bm25s

    question, *found = terms([asked, *texts], "unicode")
    if set(question).isdisjoint(word for one in found for word in one):
        return [*range(len(texts))]
    index = bm25s.BM25(k1=1.5, b=0.75, method="lucene", backend="numpy", csc_backend="scipy")
    index.index(found, show_progress=False)
    scores = index.get_scores_from_ids(index.get_tokens_ids(question))
    return sorted(range(len(texts)), key=lambda place: -scores[place])


def no_context(_: Parts) -> NoContext:
    """Return the stage that gives nothing to read."""
    return NoContext()


def gold(parts: Parts) -> GoldContext:
    """Return the stage that gives the labelled evidence."""
    return GoldContext(parts.index, budget_of(parts))


def document(parts: Parts) -> DocumentContext:
    """Return the stage that gives the files of the labelled evidence."""
    return DocumentContext(parts.index, budget_of(parts))
