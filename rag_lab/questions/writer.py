"""What a chat model is asked to write: which kinds of question, about which places; and what it wrote, as drafts.

The tasks for n drafts begin with those for fewer, so that more can be drafted later and no call is made twice.

A place is a span of a document without what stands on every page: whole sentences of a section, or rows of a table,
whatever splitter a pipeline has, since a quote is labelled. Places are spread over the corpus.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import sqrt
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from rag_lab._kit.digest import digest
from rag_lab.corpus.chunks import split
from rag_lab.corpus.config import CorpusConfig
from rag_lab.corpus.normalize import language_of
from rag_lab.data.synthetic import PASSED_OVER, TABLE_ROW, entities
from rag_lab.errors import ModelError
from rag_lab.models.protocols import ChatReply, ChatRequest
from rag_lab.records import Chunk, Document, Evidence, Passage, QueryClass, Question, Trace, Turn
from rag_lab.stages.chat_template import ChatTemplate, PromptPlace
from rag_lab.stages.context import render_passages
from rag_lab.stages.stage import ChatStage, Outcome, Stage, chat_outcome
from rag_lab.stages.understand import read_object

SpanKind = Literal["prose", "table", "sheet"]
_SPANS = CorpusConfig(splitter="sentences", chunk_words=110, overlap_words=0, whole_below=0, parents="section")
_LEAST_WORDS, _LEAST_LETTERS = 20, 0.5  # of a place: words, share of letters and digits
_LEAST_PAGES, _SHARE = 3, 0.3  # of the pages of a file: a line that stands on so many is its header or footer
_RARE = 6  # places at most that share an entity


@dataclass(frozen=True, slots=True)
class Place:
    """A span that a question can be asked about; blank where a header stood."""

    chunk: Chunk
    span: SpanKind = "prose"
    language: str = ""  # '' where it cannot be known

    @property
    def entities(self) -> list[str]:
        """Its codes and names."""
        return entities(self.chunk.text)

    def passage(self, number: int = 1) -> Passage:
        """Return it as a model reads it."""
        one = self.chunk
        return Passage(number, one.chunk_id, one.source, one.page, one.start, one.end, one.text)


def find_places(documents: Sequence[Document], language: str = "") -> list[Place]:
    """Return all places of the documents, in order, that stand once; `language` is that of files too short to tell."""
    found: list[Place] = []
    for _, pages in groupby(documents, key=lambda document: document.source):
        of_file = list(pages)
        lines_of = [page.text.split("\n") for page in of_file]
        plain = [[re.sub(r"\d", "0", line.strip()) for line in lines] for lines in lines_of]
        counts = Counter(line for of_page in plain for line in set(of_page))
        least = max(_LEAST_PAGES, _SHARE * len(of_file))
        for place, (lines, alike) in enumerate(zip(lines_of, plain, strict=True)):  # headers and footers become blanks
            kept = (" " * len(x) if counts[one] >= least else x for x, one in zip(lines, alike, strict=True))
            of_file[place] = replace(of_file[place], text="\n".join(kept))
        of_file = [page for page in of_file if not PASSED_OVER.search(page.text)]
        main = language_of("\n".join(page.text for page in of_file)) or language
        for chunk in split(of_file, _SPANS).children:
            lines = chunk.text.split("\n")
            is_table = 2 * sum(bool(TABLE_ROW.match(line)) for line in lines) > len(lines)
            is_sheet = any(page.section and page.page == chunk.page for page in of_file)
            kind: SpanKind = "prose" if not is_table else "sheet" if is_sheet else "table"
            found.append(Place(chunk, kind, language_of(chunk.text) or main))
    texts = ["".join(place.chunk.text.casefold().split()) for place in found]
    times = Counter(texts)
    return [
        place
        for place, text in zip(found, texts, strict=True)
        if times[text] == 1
        and len(place.chunk.text.split()) >= _LEAST_WORDS
        and sum(map(str.isalnum, text)) >= _LEAST_LETTERS * len(text)
    ]


def spread(found: Sequence[Place], n: int) -> list[Place]:
    """Return up to `n` places, each of the file, kind, section and page that has been chosen least, names first."""
    sizes = Counter(place.chunk.source for place in found)
    taken: Counter[object] = Counter()
    rest, chosen = {number: (place, -len(place.entities)) for number, place in enumerate(found)}, list[Place]()
    while rest and len(chosen) < n:

        def cost(number: int) -> tuple[float, ...]:
            (place, names), one = rest[number], rest[number][0].chunk
            counts = taken[place.span], taken[one.source, one.section], taken[one.source, one.page, 0]
            return taken[one.source] / sqrt(sizes[one.source]), *counts, names, number

        place, _ = rest.pop(min(rest, key=cost))
        one = place.chunk
        taken.update([one.source, place.span, (one.source, one.section), (one.source, one.page, 0)])
        chosen.append(place)
    return chosen


def pairs(found: Sequence[Place]) -> Iterator[tuple[Place, ...]]:
    """Yield pairs from two pages that share a rare entity, the rarest first, each place and entity once."""
    holders: dict[str, list[Place]] = defaultdict(list)
    for place in found:
        for entity in place.entities:
            holders[entity].append(place)
    used: set[str] = set()
    for places in sorted((some for some in holders.values() if 2 <= len(some) <= _RARE), key=len):
        first, *others = [place for place in places if place.chunk.chunk_id not in used] or places[:1]
        page = first.chunk.source, first.chunk.page
        if other := next((one for one in others if (one.chunk.source, one.chunk.page) != page), None):
            used |= {first.chunk.chunk_id, other.chunk.chunk_id}
            yield first, other


VERSION = 1  # of draft.j2: drafts are remembered by it
DRAFTED = "drafted"
Run = Callable[[Stage, Sequence[Trace]], list[Trace]]  # a stage over traces, with what is remembered
Kind = Literal["single", "two_passages", "follow_up", "unanswerable", "forbidden", "topic"]
# By turns; their numbers have no common divisor, so that all combinations come up.
_KINDS: tuple[Kind, ...] = ("single", "single", "two_passages", "single", "follow_up", "single", "single",
                            "unanswerable", "single", "single", "topic")  # fmt: skip
_CLASSES: tuple[QueryClass, ...] = ("specific", "specific", "fuzzy", "specific", "procedural")
_LENGTHS = ("short", "long")  # up to 8 words, 9 to 25
_WORDINGS = ("the passage's words", "other words", "a layman's words")
_TOKENS = 400
_LIST = {"type": "array", "items": {"type": "string"}, "maxItems": 8}
_KEYS = {"question": {"type": "string"}, "answer": {"type": "string"}, "quotes": _LIST, "before": _LIST}
PROMPT = PromptPlace(
    "draft",
    {"kind": "single", "length": "short", "wording": _WORDINGS[0], "language": "english", "query_class": "specific",
     "context": "[1] (press.md)\nP-2: 60 bar"},
    ("context",),
)  # fmt: skip
_BUILT_IN = ChatTemplate("The prompt draft.j2", Path(__file__).with_name("draft.j2").read_text(encoding="utf-8"))
_SCHEMA = {"type": "object", "properties": _KEYS, "required": list(_KEYS), "additionalProperties": False}


class Written(BaseModel):
    """The object that the model returns."""

    question: str
    answer: str = ""
    quotes: list[str] = []
    before: list[str] = []  # of a follow-up: the question before it, and its answer


@dataclass(frozen=True, slots=True)
class Draft:
    """A question about places, with what was measured of it."""

    question: Question
    kind: Kind
    places: tuple[Place, ...]
    wording: str = ""
    overlap: float = 0.0  # share of the question's content words that stand in its quotes
    bm25_rank: int | None = None  # of the first passage that holds a quote; None where it is not among the first 100
    checks: dict[str, str] = field(default_factory=dict)  # what the reader said, by check
    problem: str = ""  # why nothing was written

    @property
    def name(self) -> str:
        """The id of its question."""
        return self.question.question_id

    @property
    def quotes(self) -> list[str]:
        """The quotes of its evidence."""
        return [item.quote or "" for item in self.question.evidence]

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Its places as a model reads them."""
        return tuple(place.passage(number) for number, place in enumerate(self.places, start=1))

    @property
    def permissions(self) -> tuple[str, ...]:
        """Those of which its asker needs one; nobody needs any where it is empty."""
        return tuple(sorted({name for place in self.places for name in place.chunk.permissions}))

    @property
    def language(self) -> str:
        """The language of its first place; '' where it cannot be known."""
        return self.places[0].language if self.places else ""


@dataclass(frozen=True)
class WriteDraft(ChatStage):
    """Ask for one question; the places are the passages of the trace, what is wanted its tags and class."""

    prompt: ChatTemplate | None = None

    PROMPTS = VERSION
    name = "draft"
    reads = ("question.tags", "question.query_class", "passages")
    writes = ("raw_text",)

    def requests_for(self, trace: Trace) -> list[ChatRequest]:
        """Return the request for one task."""
        values = dict(zip(PROMPT.example, trace.question.tags, strict=False))
        asked = {"query_class": trace.question.query_class, "context": render_passages(trace.passages)}
        messages = (self.prompt or _BUILT_IN).messages(values | asked)
        return [ChatRequest(messages, _TOKENS, json_schema=_SCHEMA)]

    def read(self, trace: Trace, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]) -> Outcome:
        """Keep the object; a reply that holds none is a fallback, which is remembered."""
        found = read_object(replies[0], Written)
        if isinstance(found, str):
            return chat_outcome(replies[0], {}, "failed" if replies[0].error else "fallback", found)
        return chat_outcome(replies[0], {"raw_text": found.model_dump_json()})


def tasks(found: Sequence[Place], n: int) -> list[Draft]:
    """Return what is to be written, up to `n`: fewer where there are fewer places."""
    single, double = iter(spread(found, n)), pairs(found)
    made: list[Draft] = []
    for number in range(n):
        kind = _KINDS[number % len(_KINDS)]
        places: tuple[Place, ...] = next(double, ()) if kind == "two_passages" else ()
        kind = "single" if kind == "two_passages" and not places else kind
        if not places and (place := next(single, None)):
            places = (place,)
        if places:
            query_class = "comparative" if len(places) > 1 else _CLASSES[number % len(_CLASSES)]
            wording = _WORDINGS[number % len(_WORDINGS)]
            tags = (kind, _LENGTHS[number % len(_LENGTHS)], wording, places[0].language)
            name = f"d{digest([*tags, query_class, *(place.passage().parent_id for place in places)])[:7]}"
            made.append(Draft(Question(name, "", query_class=query_class, tags=tags), kind, places, wording))
    return made


def write(drafts: Sequence[Draft], stage: WriteDraft, run: Run) -> list[Draft]:
    """Return the drafts with what the model wrote, or why nothing; a `ModelError` where it never replied."""
    traces = run(stage, [Trace(draft.question, passages=draft.passages) for draft in drafts])
    if (failed := [trace.failure for trace in traces if trace.failure]) and len(failed) == len(traces):
        raise ModelError(f"No draft could be written: {failed[0].reason}.")
    written = []
    for draft, trace in zip(drafts, traces, strict=True):
        if trace.raw_text is None:
            written.append(replace(draft, problem=trace.stages[-1].reason))
            continue
        reply = Written.model_validate_json(trace.raw_text)
        chunks = [place.chunk for place in draft.places]
        chunks += chunks[-1:] * (len(reply.quotes) - len(chunks))
        evidence = [Evidence(one.source, one.page, quote) for one, quote in zip(chunks, reply.quotes, strict=False)]
        before = reply.before if draft.kind == "follow_up" and len(reply.before) == 2 else []
        question = replace(
            draft.question,
            text=" ".join(reply.question.split()),
            answers=tuple(reply.quotes if draft.kind == "topic" else filter(None, [reply.answer.strip()])),
            evidence=tuple(item for item in evidence if item.quote and item.quote.strip()),
            history=(Turn("user", before[0]), Turn("assistant", before[1])) if before else (),
            tags=(DRAFTED, draft.kind),
        )
        problem = "" if question.text else "the model found nothing to ask"
        written.append(replace(draft, question=question, problem=problem))
    return written
