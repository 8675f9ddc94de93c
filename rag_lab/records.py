"""The records that flow through the workbench; `Trace` is the one that every metric and report reads.

Conventions: ranks are positions in a tuple, best first; a score grows with relevance; offsets are characters into
`Document.text`, half open; pages count from 1; seconds, tokens and dollars are named as such.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from rag_lab.redaction import shortened
from rag_lab.rich_display import rich_display

QueryClass = Literal["specific", "fuzzy", "comparative", "procedural", "creative"]
QUERY_CLASSES: tuple[QueryClass, ...] = get_args(QueryClass)
StageStatus = Literal["ok", "fallback", "failed"]
ScoreStatus = Literal["scored", "failed", "not_applicable"]
Span = tuple[str, int | None, int, int]  # source, page, start, end
Level = Literal["child", "parent", "document"]  # what one result of a search is

MOST_ID_CHARS = 250  # of the id of a question or a variant, and of a metric's name, which stand in sentences

# What the record of a context's stage says where the context is none of what was retrieved.
CLOSED_BOOK = "the book is closed"
NO_LABEL = "no evidence is labelled that the asker may see"
OF_LABELS = "what the labels name is read"


@dataclass(frozen=True, slots=True)
class Document:
    """A page of a paged file, a sheet of a workbook, or the whole of another file (`page` is None).

    No two documents have the same source and page.
    """

    source: str  # path below corpus/, with forward slashes
    page: int | None  # of a workbook: the number of the sheet
    text: str
    title: str = ""
    namespace: str = ""  # whose documents these are, where a corpus serves several
    permissions: tuple[str, ...] = ()  # an asker needs one of them; nobody needs any where it is empty
    section: str = ""  # of a sheet: its name


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of one document: a child that is embedded, or the parent that is given to the reader."""

    chunk_id: str
    parent_id: str  # a parent's own id, where the chunk is a parent
    source: str
    page: int | None
    start: int
    end: int
    text: str  # == document.text[start:end]
    namespace: str = ""  # as its document's
    permissions: tuple[str, ...] = ()  # as its document's
    section: str = ""  # its document's, or the path of headings above it: `Manual > Hydraulics`


@dataclass(frozen=True, slots=True)
class Problem:
    """Something bad in the input that was left out while the rest was used."""

    path: str  # as the user would type it
    reason: str  # what is wrong and what to do, without the path
    line: int | None = None

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return shortened(f"{where}: {self.reason}")


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier turn of a conversation."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a pipeline remembers of a conversation: the last turns as they were said, those before them summed up."""

    n_turns: int = 0  # of the whole conversation before the question
    turns: tuple[Turn, ...] = ()
    summary: str = ""  # of turns before those; "" where they are forgotten, or there are none


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where an answer stands. `start`, `end` and `context` are filled once the corpus has been read."""

    source: str
    page: int | None = None
    quote: str | None = None
    start: int | None = None  # span of the quote in its document; None where there is no quote or it was not found
    end: int | None = None
    context: str = ""  # text of the parent that holds the evidence: RAGAs' reference context
    grade: int = 1  # how relevant, 1 or more; measures that know grades, as nDCG, count it
    copies: tuple[str, ...] = ()  # other files that read the same, which serve as well; filled with the span


@rich_display("rag_lab.notebook.views.data_view:question_view")
@dataclass(frozen=True, slots=True)
class Question:
    """A question with what is known about its answer."""

    question_id: str
    text: str
    answers: tuple[str, ...] = ()
    answerable: bool = True
    query_class: QueryClass | None = None  # as labelled by the dataset, never shown to the pipeline
    evidence: tuple[Evidence, ...] = ()
    history: tuple[Turn, ...] = ()
    tags: tuple[str, ...] = ()
    may_see: tuple[str, ...] | None = None  # permissions of the asker; None is unrestricted
    namespace: str | tuple[str, ...] | None = None  # the documents that are searched, of one or several; None is all
    not_relevant: tuple[Evidence, ...] = ()  # what was judged to be no evidence: grade 0
    forbidden: tuple[str, ...] = ()  # facts that its asker must not be told; no model reads them

    @property
    def namespaces(self) -> tuple[str, ...] | None:
        """The namespaces that are searched, None for all."""
        return (self.namespace,) if isinstance(self.namespace, str) else self.namespace

    @property
    def is_labelled(self) -> bool:
        """Whether anything is known of its answer: where it stands, what it is, or that there is none."""
        return bool(self.evidence or self.not_relevant or self.answers or not self.answerable)


@dataclass(frozen=True, slots=True)
class Hit:
    """What was retrieved, with the child that matched best and the score of every step that saw it.

    That is a parent; where `retrieval.level` says so the child itself, as its own parent, or a whole document.
    """

    parent_id: str
    chunk_id: str
    source: str
    page: int | None
    start: int  # span in its document of what was retrieved
    end: int
    score: float  # the score that ordered the list this hit stands in
    scores: dict[str, float] = field(default_factory=dict)  # by step: dense, bm25, hyde, rrf, cross_encoder, ...

    @property
    def span(self) -> Span:
        """Where it stands."""
        return self.source, self.page, self.start, self.end


@dataclass(frozen=True, slots=True)
class Passage:
    """A numbered passage as the model read it; `text` may be shorter than its parent where the budget cut it."""

    number: int  # from 1, as cited
    parent_id: str
    source: str
    page: int | None
    start: int
    end: int
    text: str
    parent_text: str = ""  # the parent in full, where the budget cut it: what was retrieved, not what was read
    url: str = ""  # where people open its source, if `base_url` of the data set says

    @property
    def retrieved(self) -> str:
        """The text as it was retrieved."""
        return self.parent_text or self.text


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation that names a passage of the context."""

    number: int
    source: str
    page: int | None
    quote: str = ""
    url: str = ""  # as that of its passage


@dataclass(frozen=True, slots=True)
class Answer:
    """A parsed reply."""

    text: str
    citations: tuple[Citation, ...] = ()
    rejected_citations: tuple[str, ...] = ()  # what was cited but was not in the context
    thinking: str = ""
    abstained: bool = False


@dataclass(frozen=True, slots=True)
class MachineUse:
    """What a model that computes on this machine took of it for one call; None is what could not be measured."""

    load_s: float | None = None  # before its first call, once a process; none of a stage's seconds
    memory_mb: float | None = None  # MiB by which the process grew for the model: its weights, and the most for calls
    joules: float | None = None  # of the whole machine meanwhile

    def share(self, calls: int) -> "MachineUse":
        """Return what one of `calls` took that were answered together: of them only energy is divided."""
        return self if self.joules is None else replace(self, joules=self.joules / calls)


@dataclass(frozen=True, slots=True)
class StageRecord:
    """What one stage did to one trace, and what it cost when it was first computed."""

    stage: str
    status: StageStatus = "ok"
    reason: str = ""
    seconds: float = 0.0
    replayed_s: float = 0.0  # of `seconds`: spent earlier, on what this result shares with others
    tokens_in: int = 0
    tokens_out: int = 0
    thinking_tokens: int = 0  # of `tokens_out`
    truncated_tokens: int = 0  # of what a model was sent: beyond what it reads, and so without any effect
    cost_usd: float = 0.0
    remembered: bool = False  # replayed from the store in this run
    curable: bool = False  # another attempt may do better: a rate limit, a time-out, a server that was down
    model: str = (
        ""  # the chat model that it asked, as the configuration names it; '' for none, or one given as an object
    )
    machine: MachineUse | None = None  # what that model took; None for one that computes elsewhere


@dataclass(frozen=True, slots=True)
class Visit:
    """A call of one node of an agent, and what it cost."""

    node: str
    says: str  # what it decided, wrote or found, in words
    query: str = ""  # of a search, and of what asks for one
    namespace: str = ""
    n_new: int = 0  # passages that a search added
    seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0


@rich_display("rag_lab.notebook.display:trace_view")
@dataclass(frozen=True, slots=True)
class Trace:
    """One question's whole history under one variant. Fields are None or empty until their stage has run."""

    question: Question
    repeat: int = 0
    remembered: Remembered = Remembered()  # of the question's history
    query_class: QueryClass | None = None
    proposed_query: str | None = None  # the model's rewrite, before the guard
    hyde_suggested: bool | None = None  # the model's own advice, overridden by the class rule
    search_query: str | None = None  # what base retrieval searches
    phrasings: tuple[str, ...] = ()  # other wordings of it that are searched, too
    hyde_route: str | None = None  # whose prompt writes the HyDE document: a class, `general`, or None for no HyDE
    hypothetical: str | None = None  # the HyDE document, the first where there are several
    hits: Mapping[str, tuple[Hit, ...]] = field(default_factory=dict)  # by search; `hyde` searched the HyDE document
    base_hits: tuple[Hit, ...] = ()  # of the searches by the question, combined as the mode of retrieval says
    candidates: tuple[Hit, ...] = ()  # merged, at most rerank.input_limit
    reranked: tuple[Hit, ...] = ()  # as the reranker left them, where a selection followed it
    ranked: tuple[Hit, ...] = ()  # after reranking and selection, at most 2 * rerank.final_k
    passages: tuple[Passage, ...] = ()  # the context
    prompt: str | None = None
    raw_text: str | None = None
    answer: Answer | None = None
    stages: tuple[StageRecord, ...] = ()
    texts: Mapping[Span, str] = field(default_factory=dict, compare=False, repr=False)  # of hits; never saved
    other_hypotheticals: tuple[str, ...] = ()  # HyDE documents beside the first
    visits: tuple[Visit, ...] = ()  # the path of an agent, in order

    @property
    def hypotheticals(self) -> tuple[str, ...]:
        """All HyDE documents."""
        return (self.hypothetical, *self.other_hypotheticals) if self.hypothetical else ()

    def text(self, hit: Hit) -> str:
        """Return what a hit says, as far as this trace knows: of its texts, or as the reader got it whole; else ""."""
        whole = (one.text for one in self.passages if (one.source, one.page, one.start, one.end) == hit.span)
        return self.texts.get(hit.span) or next(whole, "")

    @property
    def failure(self) -> StageRecord | None:
        """The stage that ended this trace, or None."""
        return next((record for record in self.stages if record.status == "failed"), None)

    @property
    def has_nothing_to_read(self) -> bool:
        """Whether its reader was given nothing by design: a closed book, or the evidence of a question without any."""
        by_design = any(one.reason in (CLOSED_BOOK, NO_LABEL) for one in self.stages if one.stage == "context")
        return by_design and not self.passages

    @property
    def reads_labels(self) -> bool:
        """Whether its reader was given what the labels name, whatever was retrieved."""
        return any(record.reason.startswith(OF_LABELS) for record in self.stages if record.stage == "context")

    @property
    def curable(self) -> bool:
        """Whether a stage failed or fell back for what another attempt may cure."""
        return any(record.curable for record in self.stages)


@dataclass(frozen=True, slots=True)
class Score:
    """One measurement, or the reason why there is none. `value` is a number exactly where `status` is `scored`.

    `reason` says why there is no value; of a value, what its judge or its metric said, a line a judgement.
    """

    question_id: str
    metric: str
    value: float | None
    status: ScoreStatus = "scored"
    reason: str = ""
    repeat: int = 0
    judge: str = ""
    seconds: float = 0.0
    calls: int = 0
    curable: bool = False  # another attempt may give a value, so this one is not remembered
    truncated_tokens: int = 0  # of what judge and embedding model were sent for it: beyond what they read
