"""The extractive reader: what of the context answers best, word for word, or nothing where nothing is near enough.

It cannot make things up and asks no language model: a baseline that a generative reader has to beat.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rag_lab.corpus.spans import Span, row_spans, sentence_units, trimmed
from rag_lab.models.protocols import Embedder
from rag_lab.models.truncation import truncated_of
from rag_lab.records import Answer, Citation, Passage, Question, Trace
from rag_lab.stages.stage import BuiltInStage, Outcome, Parts
from rag_lab.stores.sparse import TERMS_VERSION, terms

# The one phrase for "cannot tell", shared by prompt, parser and metrics.
NOT_FOUND = "The documents do not say."

_DECIMALS = 6  # the last digits of a vector depend on what shares its batch
_NEARER = 0.05
_LIKELIEST = 2  # runs that are read first: what they score leaves fewer that may beat it
_NOTHING = "there is nothing to quote from"
# A bullet, a number or a letter of a list, as `3.`, `(a)` or `2)`, where a line begins.
_MARK = re.compile(r"(?:[-*+•–]|\(?\d{1,3}[.)]|\(?[a-z][.)])(?=\s|$)")
_CELLS = re.compile(r"\S {2,}\S")  # the cells of a row of a PDF's table are two spaces apart
_LINE_END = re.compile(r"\s*\n\s*")


class _Quote(NamedTuple):
    passage: Passage
    text: str
    first: int  # of the sentences, rows and items in it, of those of the whole context
    last: int  # behind these

    @property
    def is_unit(self) -> bool:
        return self.last == self.first + 1


_Asked = tuple[Any, list[_Quote], list[float]]  # vector of a question, its quotes, and their shares of its words
_Read = dict[str, tuple[Any, int]]  # by text: its vector, and the tokens that the model does not read


@dataclass(frozen=True)
class Extract(BuiltInStage):
    """Quote the sentence, table row or list item that answers best, or up to `longest` of them that follow each other.

    A quote's score is the cosine of its embedding with the question's, and `word_weight` times the share of the
    question's words that stand in it, divided by the sum of the weights. A word counts by how rare it is among the
    sentences of the context (as in BM25), so that what all of them say tells none from another. Of equal scores the
    shorter quote wins, and of these the first.

    Several units are embedded only where they would beat the best so far with a cosine of `_NEARER` above the norm of
    their own: no vector between orthogonal ones is nearer than that norm. (On 1,131 questions of four sets no answer
    was another than of all quotes, from less than three fifths of the tokens.)
    """

    embedder: Embedder
    longest: int
    word_weight: float
    min_score: float

    VERSION = 2
    WORDS = TERMS_VERSION
    name = "generate"
    reads = ("question.text", "question.history", "search_query", "passages")
    writes = ("answer",)
    batch_size = 16
    costly = True

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Quote for each trace; the units of the batch are embedded in one call, what may beat them in two more."""
        contexts = [self._quotes(trace.passages) for trace in traces]
        if not any(contexts):
            return [_abstain(_NOTHING) for _ in traces]
        # The user's wording; where it follows on earlier turns, the query that stands without them.
        texts = [(trace.search_query if trace.question.history else None) or trace.question.text for trace in traces]
        queries = self.embedder.embed_queries(texts)
        read = self._read(quote for quotes in contexts for quote in quotes if quote.is_unit)
        shares = [_word_shares(question, quotes) for question, quotes in zip(texts, contexts, strict=True)]
        asked = list(zip(queries, contexts, shares, strict=True))
        candidates = [{one: n for one, n in zip(found, its, strict=True) if one.is_unit} for _, found, its in asked]
        for most in (_LIKELIEST, None):
            more = [self._may_win(one, known, read)[:most] for one, known in zip(asked, candidates, strict=True)]
            read |= self._read(quote for some in more for quote, _ in some if quote.text not in read)
            candidates = [known | dict(some) for known, some in zip(candidates, more, strict=True)]
        unread_queries = truncated_of(self.embedder, texts, "query")
        outcomes = []
        for (query, quotes, _), known, n_truncated in zip(asked, candidates, unread_queries, strict=True):
            # A run of which the model reads only the beginning is left out; of a single sentence that is counted.
            left = {one: known[one] for one in quotes if one in known and (one.is_unit or not read[one.text][1])}
            outcome = self._best(left, [float(read[quote.text][0] @ query) for quote in left])
            n_truncated += sum(read[quote.text][1] for quote in left)
            outcomes.append(replace(outcome, truncated_tokens=n_truncated))
        return outcomes

    def quoted(self, passages: Sequence[Passage]) -> list[str]:
        """Return the different texts of `passages` of which a quote is chosen: all that may be embedded."""
        return list(dict.fromkeys(quote.text for passage in passages for quote in self._quotes([passage])))

    def _quotes(self, passages: Sequence[Passage]) -> list[_Quote]:
        """Return all quotes, the units first, in order."""
        found, n_units = [], 0
        for passage in passages:
            units = quotable(passage.text)
            for first, last in windows(len(units), self.longest):
                text = passage.text[units[first][0] : units[last - 1][1]]
                found.append(_Quote(passage, text, n_units + first, n_units + last))
            n_units += len(units)
        return sorted(found, key=lambda quote: not quote.is_unit)  # stable

    def _read(self, quotes: Iterable[_Quote]) -> _Read:
        """Return the vector of each text, and how many tokens the model does not read of it."""
        texts = list(dict.fromkeys(quote.text for quote in quotes))
        unread = truncated_of(self.embedder, texts, "document")
        return dict(zip(texts, zip(self.embedder.embed_documents(texts), unread, strict=True), strict=True))

    def _may_win(self, asked: _Asked, known: Mapping[_Quote, float], read: _Read) -> list[tuple[_Quote, float]]:
        """Return what may beat the best of the `known`, and its share of the question's words, likeliest first."""
        query, quotes, shares = asked
        cosines = np.array([read[quote.text][0] @ query for quote in quotes if quote.is_unit])
        whole = (one for one in known if one.is_unit or not read[one.text][1])
        best = max((read[one.text][0] @ query + self.word_weight * known[one] for one in whole), default=0.0)
        near = np.array([np.linalg.norm(cosines[quote.first : quote.last].clip(0)) for quote in quotes])
        most = near + _NEARER + self.word_weight * np.array(shares)
        order = [place for place in np.argsort(-most, kind="stable") if most[place] > best]
        return [(quotes[place], shares[place]) for place in order if quotes[place] not in known]

    def _best(self, quotes: Mapping[_Quote, float], cosines: Sequence[float]) -> Outcome:
        if not quotes:
            return _abstain(_NOTHING)
        shares = [*quotes.values()]
        scores = (np.array(cosines) + self.word_weight * np.array(shares)) / (1 + self.word_weight)
        best = int(np.argmax(scores.round(_DECIMALS)))
        score, quote = float(scores[best]), [*quotes][best]
        score_text = f"{score:.2f} (cosine {cosines[best]:.2f}, words {shares[best]:.2f})"
        if score < self.min_score:
            return _abstain(f"the best quote scores {score_text}, below answer.quote_min_score {self.min_score:g}")
        passage = quote.passage
        citation = Citation(passage.number, passage.source, passage.page, quote.text)
        return Outcome({"answer": Answer(_LINE_END.sub(" ", quote.text), (citation,))}, reason=f"scores {score_text}")


def _word_shares(question: str, quotes: Sequence[_Quote]) -> list[float]:
    """Return the share of the question's words that each quote has, each word by its rarity among single units."""
    (asked, *texts) = [set(found) for found in terms([question, *(quote.text for quote in quotes)], "unicode")]
    units = [words for words, quote in zip(texts, quotes, strict=True) if quote.is_unit]
    counts = Counter(word for words in units for word in words & asked)
    weights = {word: math.log(1 + len(units) / (counts[word] + 0.5)) for word in sorted(asked)}
    total = sum(weights.values())
    return [sum(weights[word] for word in sorted(asked & words)) / total if total else 0.0 for words in texts]


def _abstain(reason: str) -> Outcome:
    return Outcome({"answer": Answer(NOT_FOUND, abstained=True)}, reason=reason)


def nearest_quotes(parts: Parts, question: Question, texts: Sequence[str]) -> list[str]:
    """Return the sentence, row or item of each text that is nearest to the question; "" where a text has none."""
    reader = replace(extract_stage(parts), longest=1, min_score=-math.inf)
    traces = [Trace(question, passages=(Passage(1, "", "", None, 0, len(text), text),)) for text in texts]
    answers: list[Answer] = [outcome.updates["answer"] for outcome in reader.run(traces)]
    return [answer.citations[0].quote if answer.citations else "" for answer in answers]


def extract_stage(parts: Parts) -> Extract:
    """Return the stage that quotes by `models.embedding`."""
    answer = parts.answer
    return Extract(parts.embedder, answer.quote_sentences, answer.quote_word_weight, answer.quote_min_score)


def quotable(text: str) -> list[Span]:
    """Return the spans of the sentences, table rows and list items of `text`, in order, without whitespace around."""
    rows = set(row_spans(text))
    units = [part for unit in sentence_units(text) for part in ([unit] if unit in rows else _lines(text, unit))]
    found: list[Span] = []
    begin: int | None = None  # of a list's marks that were taken for sentences; they stand before what they number
    for start, end in trimmed(text, units):
        if _MARK.fullmatch(text, start, end):
            begin = start if begin is None else begin
        else:
            found.append((start if begin is None else begin, end))
            begin = None
    return found


def windows(n_units: int, longest: int) -> list[tuple[int, int]]:
    """Return where every run of 1 to `longest` of so many units begins and ends: shorter ones first, each in order."""
    lengths = range(1, min(longest, n_units) + 1)
    return [(first, first + length) for length in lengths for first in range(n_units - length + 1)]


def _lines(text: str, unit: Span) -> Iterator[Span]:
    """Cut a sentence at the lines that are rows of a table without bars, and before those that begin a list item."""
    begin, place, is_after_row = unit[0], unit[0], False
    for line in text[slice(*unit)].splitlines(keepends=True):
        mark = _MARK.match(line.lstrip())
        is_row = bool(_CELLS.search(line.lstrip()[mark.end() :].strip() if mark else line))
        if (mark or is_row or is_after_row) and place > begin:
            yield begin, place
            begin = place
        place, is_after_row = place + len(line), is_row
    yield begin, unit[1]
