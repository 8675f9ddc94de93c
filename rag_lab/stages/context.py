"""Assemble the context: numbered passages with source and page, within a budget; of what was retrieved, or bounds.

The bounds say what retrieval can bring a reader at most: nothing, the labelled evidence, or the whole of its file. What
retrieval found is measured all the same; it is not read. The budget is in tokens and bytes.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import ClassVar, NamedTuple

from rag_lab._kit.custom_code import CustomCode, CustomCodeError
from rag_lab.corpus.corpus_index import CorpusIndex
from rag_lab.corpus.spans import PageStarts, page_at
from rag_lab.models.protocols import ChatModel
from rag_lab.records import CLOSED_BOOK, NO_LABEL, OF_LABELS, Chunk, Document, Evidence, Hit, Passage, Trace
from rag_lab.stages.stage import BuiltInStage, CustomStage, Exchange, Outcome, Parts, Stage, stage_of
from rag_lab.stages.steps import CONTEXTS
from rag_lab.stores.sparse import TERMS_VERSION, terms

NEAREST = "of a file or page of several passages those nearest to question and answers"
SEPARATOR = "\n\n"  # between passages
_PIECE = 400  # characters of the pieces of a passage; a passage without a quote is cut around the nearest
_SHRINK = 0.95  # of the length that the token count suggests, since tokens are not spread evenly over a text
_LEAST_CHARS = 40  # a shorter piece of a passage tells a reader nothing

Size = tuple[int, int]  # tokens, and bytes of UTF-8


class Wanted(NamedTuple):
    """A passage in full, and where it is cut around; `page_starts` are those of a file whose pages are one text."""

    passage: Passage
    centre: int
    page_starts: PageStarts = ()


@dataclass(frozen=True)
class ContextBudget:
    """How much the model that reads the context may be given; it counts the tokens, one by one and then the whole."""

    counter: ChatModel
    max_tokens: int
    max_bytes: int = 0  # of UTF-8; 0 is no limit

    def fill(self, wanted: Sequence[Wanted], *, is_shared: bool, less: int = 0) -> list[Passage]:
        """Return what fits, `less` tokens left free.

        Where it `is_shared`, each gets an equal share of what is left, a longer one as a window around its centre, and
        one too short to say anything is left out. Else the first ones stand whole, the next is cut, and those after it
        are left out.
        """
        passages: list[Passage] = []
        used, budget = (0, 0), self.max_tokens - less
        for position, one in enumerate(wanted):
            spent = self._worth(used)
            n_sharing = len(wanted) - position if is_shared else 1
            fitting = self._fit(len(passages) + 1, one, used, spent + (budget - spent) // n_sharing)
            if fitting is not None:
                passages.append(fitting[0])
                used = (used[0] + fitting[1][0], used[1] + fitting[1][1])
            if not is_shared and (fitting is None or fitting[0].parent_text):
                break
        excess = self.excess(passages)
        return self.fill(wanted, is_shared=is_shared, less=less + excess) if excess > 0 else passages

    def excess(self, passages: Sequence[Passage]) -> int:
        """Return by how many tokens these passages, as they are numbered, are too long; 0 or less where they fit."""
        return self._worth(self._size(render_passages(passages))) - self.max_tokens if passages else 0

    def left_out(self, n: int, given: Sequence[Passage]) -> str:
        """Say how many of `n` passages are not among those given; "" where all are."""
        missing = n - len(given)
        limits = f"{self.max_tokens} tokens" + (f" and {self.max_bytes} bytes" if self.max_bytes else "")
        return f"{missing} of {n} passages did not fit {limits}" if missing else ""

    def _fit(self, number: int, wanted: Wanted, used: Size, limit: int) -> tuple[Passage, Size] | None:
        """Return the passage, or the largest window around its centre, that keeps the context within `limit`."""
        whole = replace(wanted.passage, number=number)
        spent, text = self._worth(used), whole.text
        before = SEPARATOR if number > 1 else ""
        passage, size = whole, self._size(before + render_passage(whole))
        while (worth := self._worth(used, size)) > limit:
            length = int(len(passage.text) * _SHRINK * max(limit - spent, 0) / (worth - spent))
            if length < _LEAST_CHARS:
                return None
            start = max(0, min(wanted.centre - length // 2, len(text) - length))
            end = start + length
            if start and (space := text.find(" ", start, end)) >= 0:  # it is cut between words
                start = space + 1
            if end < len(text) and (space := text.rfind(" ", start, end)) > start:
                end = space
            begin, window = whole.start + start, text[start:end]
            passage = replace(whole, start=begin, end=whole.start + end, text=window, parent_text=text)
            if wanted.page_starts:
                passage = replace(passage, page=page_at(wanted.page_starts, begin))
            size = self._size(before + render_passage(passage))
        return passage, size

    def _size(self, text: str) -> Size:
        return self.counter.count_tokens(text), len(text.encode())

    def _worth(self, *sizes: Size) -> int:
        """Return the share of the budget that sizes use up, in tokens: bytes count as what they are worth."""
        tokens, n_bytes = sum(size[0] for size in sizes), sum(size[1] for size in sizes)
        return max(tokens, -(-n_bytes * self.max_tokens // self.max_bytes) if self.max_bytes else 0)


def context_budget(parts: Parts) -> ContextBudget:
    """Return the budget of the context; the model that reads it counts its tokens."""
    return ContextBudget(parts.chat("generation"), parts.answer.context_tokens, parts.answer.context_bytes)


def context_stage(parts: Parts) -> Stage:
    """Return what assembles the context."""
    answer, index, final_k = parts.answer, parts.index, parts.rerank.final_k

    built_in: dict[str, Callable[[], Stage]] = {
        "retrieved": lambda: Assemble(index, context_budget(parts), final_k),
        "none": NoContext,
        "gold": lambda: GoldContext(index, context_budget(parts)),
        "gold_first": lambda: GoldFirst(index, context_budget(parts), final_k),
        "document": lambda: DocumentContext(index, context_budget(parts)),
    }

    def custom(code: CustomCode) -> Stage:
        parameters = {"index": index, "budget": context_budget(parts), "final_k": final_k}
        reads = ("question.text", "ranked")
        return CustomStage("CustomContext", "context", reads, ("passages",), _rewritten, parameters, code)

    return stage_of(CONTEXTS, "context", answer.context, parts, built_in, custom)


@dataclass(frozen=True)
class Assemble(BuiltInStage):
    """Give each of the first `final_k` parents an equal share of the budget, a longer one cut around the match."""

    index: CorpusIndex
    budget: ContextBudget
    final_k: int

    VERSION = 4
    name = "context"
    reads = ("ranked",)
    writes = ("passages",)
    batch_size = 32
    costly = True

    def outcome(self, trace: Trace) -> Outcome:
        """Assemble the context of one trace."""
        wanted = [_found(self.index, hit) for hit in trace.ranked[: self.final_k]]
        passages = self.budget.fill(wanted, is_shared=True)
        return Outcome({"passages": tuple(passages)}, reason=self.budget.left_out(len(wanted), passages))


def _found(index: CorpusIndex, hit: Hit) -> Wanted:
    """Return the parent of a hit, to be cut around the child that matched."""
    child, text = index.chunks.child(hit.chunk_id), index.text(hit)
    whole = Passage(0, hit.parent_id, hit.source, hit.page, hit.start, hit.end, text)
    return Wanted(whole, (child.start + child.end) // 2 - hit.start, index.manifest.page_starts.get(hit.source, ()))


def _rewritten(trace: Trace, index: CorpusIndex, budget: ContextBudget, final_k: int) -> Exchange:
    """`(question, passages) -> texts`: a text for each passage, numbered here, None for one to leave out.

    Passages that no longer fit the built-in budget are left out from the end, which the record says.
    """
    hits = trace.ranked[:final_k]
    if not hits:
        return Outcome({"passages": ()}, seconds=0.0)
    returned = yield trace.question.text, [index.text(hit) for hit in hits]
    if isinstance(returned, str) or not isinstance(returned, Iterable):
        raise CustomCodeError(f"the context returned {type(returned).__name__} where a text for each passage is due")
    texts = ["" if text is None else text for text in returned]
    if len(texts) != len(hits):
        raise CustomCodeError(f"the context returned {len(texts)} texts for {len(hits)} passages")
    if strangers := [type(text).__name__ for text in texts if not isinstance(text, str)]:
        raise CustomCodeError(f"the context returned {strangers[0]} where a text is due")
    kept = [(hit, text) for hit, text in zip(hits, texts, strict=True) if text]
    passages = []
    for number, (hit, text) in enumerate(kept, start=1):
        whole = index.text(hit)
        cut_from = "" if text == whole else whole
        passages.append(Passage(number, hit.parent_id, hit.source, hit.page, hit.start, hit.end, text, cut_from))
    while budget.excess(passages) > 0:
        passages.pop()
    left_out = len(kept) - len(passages)
    reason = f"{left_out} of {len(kept)} passages did not fit the budget" if left_out else ""
    return Outcome({"passages": tuple(passages)}, reason=reason)


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
class GoldContext(BuiltInStage):
    """Give the reader the parents that hold the labelled evidence, of files that its asker may see, in equal shares.

    One that does not fit is cut around the quote. A label without a quote may name several parents: the nearest to
    question and answers, by BM25 among them, stand whole, in turn with those of the other labels, until the budget is
    full.
    """

    index: CorpusIndex
    budget: ContextBudget

    VERSION = 4
    WORDS = TERMS_VERSION
    name = "context"
    reads: ClassVar[tuple[str, ...]] = (
        "question.text", "question.answers", "question.evidence", "question.may_see", "question.namespace",
    )  # fmt: skip
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
        wanted: dict[str, Wanted] = {}
        several: list[list[Chunk]] = []
        for one in evidence:
            parents: list[Chunk] = []
            for document in self.index.chunks.documents(one.source):
                if one.page in (None, document.page):
                    found = self.index.chunks.parents(document.source, document.page)
                    if one.start is None or one.end is None:
                        parents += found
                        continue
                    touched = [parent for parent in found if parent.start < one.end and parent.end > one.start]
                    whole = [parent for parent in touched if parent.start <= one.start and parent.end >= one.end]
                    # parents of neighbouring children overlap: the shortest that holds all of the quote
                    shortest = sorted(whole, key=lambda parent: (parent.end - parent.start, parent.start))
                    parents += shortest[:1] or touched
            if one.start is None and len(parents) > 1:
                several.append([parents[place] for place in _nearest([parent.text for parent in parents], asked)])
                continue
            for parent in parents:
                wanted.setdefault(parent.chunk_id, self._wanted(parent.chunk_id, parent, parent.start, one, asked))
        if not several:
            return self.budget.fill([*wanted.values()], is_shared=True), len(wanted), False
        for parent in (parent for turn in zip_longest(*several) for parent in turn if parent is not None):
            if parent.chunk_id not in wanted:
                wanted[parent.chunk_id] = self._wanted(parent.chunk_id, parent, parent.start, None, asked)
        return self.budget.fill([*wanted.values()], is_shared=False), len(wanted), True

    def _wanted(
        self, parent_id: str, unit: Chunk | Document, start: int, evidence: Evidence | None, asked: str
    ) -> Wanted:
        """Return a parent or page, whose text begins at `start`, to be cut around the quote, or the nearest piece."""
        text = unit.text
        whole = Passage(0, parent_id, unit.source, unit.page, start, start + len(text), text)
        if evidence is not None and evidence.start is not None and evidence.end is not None:
            middle = (evidence.start + evidence.end) // 2 - start
        else:
            pieces = [text[begin : begin + _PIECE] for begin in range(0, len(text), _PIECE)]
            middle = _PIECE * _nearest(pieces, asked)[0] + _PIECE // 2
        return Wanted(whole, middle, self.index.manifest.page_starts.get(unit.source, ()))


@dataclass(frozen=True)
class GoldFirst(GoldContext):
    """Give the reader the labelled evidence as `GoldContext`, and below it, in what is left, `final_k` parents found.

    Where the reader is right with the evidence alone and wrong here, what was found crowds the evidence out.
    """

    final_k: int

    VERSION = 1
    reads = (*GoldContext.reads, "ranked")

    def outcome(self, trace: Trace) -> Outcome:
        """Assemble the context of one trace."""
        gold = super().outcome(trace)
        first: tuple[Passage, ...] = gold.updates["passages"]
        if not first:
            return gold
        there = {passage.parent_id for passage in first}
        found = [_found(self.index, hit) for hit in trace.ranked[: self.final_k] if hit.parent_id not in there]
        kept = [Wanted(passage, 0) for passage in first]
        passages = self.budget.fill([*kept, *found], is_shared=True)
        left_out = self.budget.left_out(len(kept) + len(found), passages)
        return Outcome({"passages": tuple(passages)}, reason="; ".join(filter(None, (gold.reason, left_out))))


class DocumentContext(GoldContext):
    """Give the reader the files of the labelled evidence, page by page; beyond the budget the furthest are left out."""

    def _passages(self, evidence: Sequence[Evidence], asked: str) -> tuple[list[Passage], int, bool]:
        pages: list[tuple[int, Wanted]] = []
        is_guessed = False
        for source in dict.fromkeys(one.source for one in evidence):
            documents = self.index.chunks.documents(source)
            labels = {one.page: one for one in evidence if one.source == source}
            labelled = [place for place, document in enumerate(documents) if document.page in labels]
            if not labelled:
                labelled, is_guessed = _nearest([document.text for document in documents], asked)[:1], True
            for place, document in enumerate(documents):
                page, n_chars = document.page, len(document.text)
                parent_id = f"{source}#0-{n_chars}" if page is None else f"{source}#p{page}"  # that it has as a parent
                whole = self._wanted(parent_id, document, 0, labels.get(page), asked)
                pages.append((min(abs(place - one) for one in labelled), whole))
        nearest = sorted(range(len(pages)), key=lambda place: pages[place][0])
        kept = self.budget.fill([pages[place][1] for place in nearest], is_shared=False)
        while True:
            pairs = sorted(zip(nearest, kept, strict=False), key=lambda pair: pair[0])
            in_order = [replace(passage, number=number) for number, (_, passage) in enumerate(pairs, start=1)]
            if self.budget.excess(in_order) <= 0:
                return in_order, len(pages), is_guessed
            kept.pop()  # numbers are counted with the texts, and change places with them


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


def render_passage(passage: Passage) -> str:
    """Return a passage as the model reads it: number, source, page, text."""
    where = passage.source if passage.page is None else f"{passage.source}, page {passage.page}"
    return f"[{passage.number}] ({where})\n{passage.text}"


def render_passages(passages: Sequence[Passage]) -> str:
    """Return the context as the model reads it."""
    return SEPARATOR.join(render_passage(passage) for passage in passages)
