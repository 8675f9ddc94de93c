"""The extractive reader: what of the context answers best, word for word, or nothing where nothing is near enough.

It cannot make things up and asks no language model: a baseline that a generative reader has to beat.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

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
_NOTHING = "there is nothing to quote from"
# A bullet, a number or a letter of a list, as `3.`, `(a)` or `2)`, where a line begins.
_MARK = re.compile(r"(?:[-*+•–]|\(?\d{1,3}[.)]|\(?[a-z][.)])(?=\s|$)")
_CELLS = re.compile(r"\S {2,}\S")  # the cells of a row of a PDF's table are two spaces apart
_LINE_END = re.compile(r"\s*\n\s*")


class _Quote(NamedTuple):
    passage: Passage
    text: str
    is_unit: bool  # one sentence, row or item


@dataclass(frozen=True)
class Extract(BuiltInStage):
    """Quote the sentence, table row or list item that answers best, or up to `longest` of them that follow each other.

    A quote's score is the cosine of its embedding with the question's, and `word_weight` times the share of the
    question's words that stand in it, divided by the sum of the weights. A word counts by how rare it is among the
    sentences of the context (as in BM25), so that what all of them say tells none from another. Of equal scores the
    shorter quote wins, and of these the first.
    """

    embedder: Embedder
    longest: int
    word_weight: float
    min_score: float

    WORDS = TERMS_VERSION
    name = "generate"
    reads = ("question.text", "question.history", "search_query", "passages")
    writes = ("answer",)
    batch_size = 16
    costly = True

    def run(self, traces: Sequence[Trace]) -> list[Outcome]:
        """Quote for each trace; all quotes of the batch are embedded in one call."""
        texts = self.quoted([passage for trace in traces for passage in trace.passages])
        if not texts:
            return [_abstain(_NOTHING) for _ in traces]
        truncated = dict(zip(texts, truncated_of(self.embedder, texts, "document"), strict=True))
        vectors = dict(zip(texts, self.embedder.embed_documents(texts), strict=True))
        # The user's wording; where it follows on earlier turns, the query that stands without them.
        questions = [
            (trace.search_query if trace.question.history else None) or trace.question.text for trace in traces
        ]
        queries = self.embedder.embed_queries(questions)
        unread_queries = truncated_of(self.embedder, questions, "query")
        outcomes = []
        for trace, question, query, n_truncated in zip(traces, questions, queries, unread_queries, strict=True):
            # A run of which the model reads only the beginning is left out; of a single sentence that is counted.
            quotes = [one for one in self._quotes(trace.passages) if one.is_unit or not truncated[one.text]]
            if not quotes:
                outcomes.append(_abstain(_NOTHING))
                continue
            outcome = self._best(question, quotes, [float(vectors[quote.text] @ query) for quote in quotes])
            n_truncated += sum(truncated[quote.text] for quote in quotes)
            outcomes.append(replace(outcome, truncated_tokens=n_truncated))
        return outcomes

    def quoted(self, passages: Sequence[Passage]) -> list[str]:
        """Return the different texts of `passages` that are embedded to choose a quote among them."""
        return list(dict.fromkeys(quote.text for passage in passages for quote in self._quotes([passage])))

    def _quotes(self, passages: Sequence[Passage]) -> list[_Quote]:
        found = []
        for passage in passages:
            units = quotable(passage.text)
            alone = set(units)
            spans = windows(units, self.longest)
            found += [_Quote(passage, passage.text[slice(*span)], span in alone) for span in spans]
        return sorted(found, key=lambda quote: not quote.is_unit)  # stable

    def _best(self, question: str, quotes: Sequence[_Quote], cosines: Sequence[float]) -> Outcome:
        # The share of the question's words that each quote has, each word by its rarity among single quotes.
        (asked, *texts) = [set(found) for found in terms([question, *(quote.text for quote in quotes)], "unicode")]
        units = [words for words, quote in zip(texts, quotes, strict=True) if quote.is_unit]
        counts = Counter(word for words in units for word in words & asked)
        weights = {word: math.log(1 + len(units) / (counts[word] + 0.5)) for word in sorted(asked)}
        total = sum(weights.values())
        shares = [sum(weights[word] for word in sorted(asked & words)) / total if total else 0.0 for words in texts]
        scores = (np.array(cosines) + self.word_weight * np.array(shares)) / (1 + self.word_weight)
        best = int(np.argmax(scores.round(_DECIMALS)))
        score, quote = float(scores[best]), quotes[best]
        score_text = f"{score:.2f} (cosine {cosines[best]:.2f}, words {shares[best]:.2f})"
        if score < self.min_score:
            return _abstain(f"the best quote scores {score_text}, below answer.quote_min_score {self.min_score:g}")
        passage = quote.passage
        citation = Citation(passage.number, passage.source, passage.page, quote.text)
        return Outcome({"answer": Answer(_LINE_END.sub(" ", quote.text), (citation,))}, reason=f"scores {score_text}")


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


def windows(units: Sequence[Span], longest: int) -> list[Span]:
    """Return every run of 1 to `longest` units that follow each other: the shorter ones first, each in order."""
    lengths = range(1, min(longest, len(units)) + 1)
    return [
        (units[first][0], units[first + length - 1][1])
        for length in lengths
        for first in range(len(units) - length + 1)
    ]


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
