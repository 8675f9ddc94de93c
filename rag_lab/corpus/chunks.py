"""Documents to parents, which the reader gets, and children, which are embedded; and what stands before a child there.

What stands before a child is for the search alone: its text, its span and its id are the same without it. A model's
sentence about a passage within its document is Anthropic's "contextual retrieval" (2024).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from rag_lab._kit.digest import digest
from rag_lab.corpus.config import BY_SUFFIX, CorpusConfig
from rag_lab.corpus.spans import PageStarts, Span, headings, page_at, path_at, row_spans, sheet_spans, trimmed
from rag_lab.corpus.splitters import Splitter, Unsplit, section_spans, split_spans, splitter_of
from rag_lab.errors import ConfigError
from rag_lab.memory.results import Memory, Work
from rag_lab.models.protocols import ChatModel, ChatReply, ChatRequest, Embedder, Message, Vectors
from rag_lab.models.remembered_vectors import RememberedEmbedder
from rag_lab.records import Chunk, Document
from rag_lab.stores import registry
from rag_lab.stores.config import StoreConfig

_VECTORS_FORMAT = 1  # raised when what is embedded of a child changes
_PROMPT_VERSION = 1  # raised with the words
_SYSTEM = (
    "You are shown a document and a passage of it. Write one sentence that says what the passage is about within the "
    "document, with the names, dates and numbers that a reader of the passage alone would miss, in the language of the "
    "document. Reply with the sentence alone."
)
_MAX_TOKENS = 128
_TOKENS_AROUND = 64  # of a chat template and of the words between document and passage
_NARROWEST = 400  # characters of a document that are shown at least
_NO_TOKENS = "corpus.context is late, but {} gives no vectors of tokens: choose minilm, or another context."


def fixed_parents(document: Document, config: CorpusConfig) -> list[Span] | None:
    """Return the parents that do not depend on the children, in order; None where they do.

    They hold each character that is not whitespace exactly once. Where a text has no page or no section, they are
    pieces of about `parent_size` characters. A sheet of a workbook is no page: it may have any length.
    """
    text = document.text
    if config.parents == "page" and document.page is not None and not document.section:
        return trimmed(text, [(0, len(text))])
    if config.parents == "section" and len(sections := section_spans(text)) > 1:
        return trimmed(text, sections)
    if config.parents in ("page", "section", "fixed"):
        return split_spans(text, [(0, len(text))], config.parent_size, 0)
    return None


@dataclass(frozen=True, slots=True)
class Cut:
    """A parent of one document and its children, as spans of the document."""

    parent: Span
    children: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Chunks:
    """Parents and children of a corpus, both in the order of its documents."""

    parents: tuple[Chunk, ...]
    children: tuple[Chunk, ...]


def split(documents: Sequence[Document], config: CorpusConfig, embedder: Embedder | None = None) -> Chunks:
    """Split documents into parents, and parents into children; see `cut` and `chunks`."""
    found = cut(documents, config, splitter_of(config, embedder))
    if reasons := [item.reason for item in found if isinstance(item, Unsplit)]:
        raise ConfigError(reasons[0])
    return chunks(documents, [item for item in found if not isinstance(item, Unsplit)], config)


def cut_identity(config: CorpusConfig, splitter: Splitter) -> Mapping[str, Any]:
    """Return whatever changes where documents are cut, beside their text."""
    by_children = {"neighbours": {"around": config.neighbours}, "none": {}}
    parents = {"name": config.parents, "version": 1, **by_children.get(config.parents, {"size": config.parent_size})}
    found = {"version": 2, "splitter": dict(splitter.identity()), "parents": parents}
    found |= {} if config.sheet_rows == "packed" else {"sheet_rows": config.sheet_rows}
    return found if config.pdf_unit == "page" else {**found, "pdf_unit": config.pdf_unit}


def cut(documents: Sequence[Document], config: CorpusConfig, splitter: Splitter) -> list[list[Cut] | Unsplit]:
    """Return for each document its parents with their children, in order, or why it could not be split.

    A child is a span in its parent without whitespace at its ends. Those of our splitters hold every other character,
    and no table row is cut.
    """
    parents = [fixed_parents(document, config) for document in documents]
    rows = [_sheet_spans(document) if config.sheet_rows == "one" else [] for document in documents]
    regions = [
        (document.text, span, own)
        for document, spans, own in zip(documents, parents, rows, strict=True)
        for span in ([(0, len(document.text))] if spans is None else spans)
    ]
    split = iter(splitter.split([text[start:end] for text, (start, end), own in regions if not own]))
    found: list[list[Span] | Unsplit] = []
    for text, (start, end), own in regions:  # of a sheet's rows the parts that lie in the region, as spans of its text
        inside = trimmed(text, [(max(a, start), min(b, end)) for a, b in own if a < end and b > start])
        found.append([(a - start, b - start) for a, b in inside] if own else next(split))
    pieces = iter(found)
    return [_cut(spans, list(islice(pieces, 1 if spans is None else len(spans))), config) for spans in parents]


def _sheet_spans(document: Document) -> list[Span]:
    is_sheet = BY_SUFFIX.get(Path(document.source).suffix.lower()) in ("spreadsheet", "delimited")
    return sheet_spans(document.text) if is_sheet else []


def chunks(
    documents: Sequence[Document],
    cuts: Sequence[Sequence[Cut]],
    config: CorpusConfig,
    page_starts: Mapping[str, PageStarts] = MappingProxyType({}),
) -> Chunks:
    """Return the chunks that `cut` describes.

    Ids are readable: `file.pdf#p3` for a page, `file.txt#0-2400` or `file.pdf#p3:0-2400` for another parent,
    `<parent>/0` and so on for its children. Chunks carry their document's attributes, the page on which they begin, and
    the sheet or, where sections matter to the splitter or the parents, the path of headings.
    """
    parents: list[Chunk] = []
    children: list[Chunk] = []
    for document, found in zip(documents, cuts, strict=True):
        by_section = config.splitter == "markdown" or config.parents == "section"
        above = headings(document.text) if by_section else []
        starts = page_starts.get(document.source, ())
        for item in found:
            start, end = item.parent
            parent_id = f"{document.source}#{start}-{end}"
            if document.page is not None:
                is_page = config.parents == "page" and not document.section
                parent_id = f"{document.source}#p{document.page}" + ("" if is_page else f":{start}-{end}")
            ids = [parent_id, *(f"{parent_id}/{number}" for number in range(len(item.children)))]
            parent, *of_parent = (
                Chunk(
                    chunk_id=chunk_id,
                    parent_id=parent_id,
                    source=document.source,
                    page=page_at(starts, first) if starts else document.page,
                    start=first,
                    end=last,
                    text=document.text[first:last],
                    namespace=document.namespace,
                    permissions=document.permissions,
                    section=path_at(above, first) or document.section,
                )
                for chunk_id, (first, last) in zip(ids, (item.parent, *item.children), strict=True)
            )
            parents.append(parent)
            children += of_parent
    return Chunks(tuple(parents), tuple(children))


def _cut(
    spans: Sequence[Span] | None, found: Sequence[list[Span] | Unsplit], config: CorpusConfig
) -> list[Cut] | Unsplit:
    """Return the cuts of one document, of which `spans` are the parents that do not depend on the children."""
    split = [children for children in found if not isinstance(children, Unsplit)]
    if len(split) < len(found):
        return next(children for children in found if isinstance(children, Unsplit))
    if spans is None:  # a child's parent is itself, or with it the `neighbours` before and after it
        around = config.neighbours if config.parents == "neighbours" else 0
        windows = (split[0][max(0, n - around) : n + around + 1] for n in range(len(split[0])))
        parents = [(window[0][0], max(end for _, end in window)) for window in windows]
        # At a document's ends windows can coincide: children of one parent are put together.
        pairs = groupby(zip(parents, split[0], strict=True), key=lambda pair: pair[0])
        return [Cut(parent, tuple(child for _, child in same)) for parent, same in pairs]
    return [
        Cut((start, end), tuple((start + first, start + last) for first, last in children))
        for (start, end), children in zip(spans, split, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model is asked about one chunk: the document, or the part around the chunk that the model can read."""

    document: str  # the same object for all chunks that are shown the same
    passage: str

    def request(self) -> ChatRequest:
        """Return the call; what chunks have in common comes first, so that a provider may cache it."""
        shown = f"Document:\n{self.document}\n\nPassage of this document:\n{self.passage}"
        return ChatRequest((Message("system", _SYSTEM), Message("user", shown)), _MAX_TOKENS)


@dataclass(frozen=True)
class Contexts:
    """What stands before a chunk where it is searched: nothing, a path of headings, the file's name, or a sentence.

    The `model` writes the sentence, which is remembered by what was shown. Where it writes none, the path of headings
    stands in its place, and `problems` says so by file; `for_now` are the chunks of which another attempt may get one.
    Where `asks` is False, as in a plan, no model is asked. Where `rows`, a sheet's header stands before each row, too.
    """

    kind: str = "none"
    model: ChatModel | None = None
    memory: Memory | None = None
    asks: bool = True
    rows: bool = False
    problems: dict[str, list[str]] = field(default_factory=dict, compare=False)
    for_now: list[str] = field(default_factory=list, compare=False)

    def identity(self) -> dict[str, Any]:
        """Return whatever changes what is searched, beside the chunks; nothing where these alone are searched."""
        if self.kind == "none" and not self.rows:
            return {}
        found: dict[str, Any] = {"name": self.kind, "version": 1} | ({"rows": True} if self.rows else {})
        found |= {"model": dict(self.model.identity()), "prompt": _PROMPT_VERSION} if self.model else {}
        return {"context": found | ({"for_now": self.for_now} if self.for_now else {})}

    @property
    def words(self) -> "Contexts":
        """What stands before a chunk where words are searched: what is embedded late has no words more."""
        return replace(self, kind="none") if self.kind == "late" else self

    def embed(
        self, embedder: RememberedEmbedder, documents: Callable[[], Sequence[Document]], found: Sequence[Chunk]
    ) -> Vectors:
        """Return the vectors of chunks, which have what stands before them: each by itself, or within its document."""
        if self.kind != "late":
            return embedder.embed_documents([one.text for one in found])
        if problem := late_problem(embedder.inner):
            raise ConfigError(problem)
        texts = {(one.source, one.page): one.text for one in documents()}
        places = [((one.source, one.page) if (one.source, one.page) in texts else (one.source, None)) for one in found]
        rows = []
        for place, some in groupby(zip(places, found, strict=True), key=itemgetter(0)):
            rows.append(embedder.embed_spans(texts[place], [(one.start, one.end) for _, one in some]))
        return np.concatenate(rows)

    def before(self, documents: Sequence[Document], found: Sequence[Chunk]) -> dict[str, str]:
        """Return what stands before each chunk, by its id; "" where that is nothing."""
        before = {one.chunk_id: "" for one in found} if self.words.kind == "none" else self._about(documents, found)
        headers = dict[tuple[str, int | None], tuple[int, str]]()
        for document in documents if self.rows else ():
            if spans := _sheet_spans(document):
                end, text = spans[0][1], document.text
                headers[document.source, document.page] = end, text[slice(*row_spans(text[:end])[0])]
        for one in found if headers else ():
            end, header = headers.get((one.source, one.page), (0, ""))
            if header and one.start >= end:
                before[one.chunk_id] = "\n\n".join(filter(None, (before[one.chunk_id], header)))
        return before

    def _about(self, documents: Sequence[Document], found: Sequence[Chunk]) -> dict[str, str]:
        if self.kind == "file":
            return {one.chunk_id: one.source + (f", page {one.page}" if one.page else "") for one in found}
        above = {(one.source, one.page): headings(one.text) for one in documents}
        paths = {
            one.chunk_id: path_at(above.get((one.source, one.page)) or above.get((one.source, None), []), one.start)
            or one.section
            for one in found
        }
        if self.kind != "llm":
            return paths
        asked = self.asked(documents, found)
        replies = self._replies({key: one for _, key, one in asked})
        for chunk, key, _ in asked:
            reply = replies.get(key, ChatReply())
            if reply.text:
                paths[chunk.chunk_id] = reply.text
            elif self.asks:
                self.problems.setdefault(chunk.source, []).append(reply.error or "nothing was written to its end")
                self.for_now.extend([chunk.chunk_id] if reply.error else [])
        return paths

    def asked(self, documents: Sequence[Document], found: Sequence[Chunk]) -> list[tuple[Chunk, str, Asked]]:
        """Return each chunk with what a model is asked about it, and the key that its reply is remembered under."""
        model = self.model
        assert model is not None  # noqa: S101 - the kind is llm
        identity, asked = digest([dict(model.identity()), _PROMPT_VERSION]), []
        by_file = {name: list(some) for name, some in groupby(documents, key=lambda one: one.source)}
        for name, chunks_of in groupby(found, key=lambda one: one.source):
            some = list(chunks_of)
            starts, text = dict[int | None, int](), ""
            for document in by_file[name]:
                starts[document.page] = len(text)
                text += document.text + "\n\n"
            longest = max(model.count_tokens(one.text) for one in some)
            room = model.context_tokens - longest - _MAX_TOKENS - model.count_tokens(_SYSTEM) - _TOKENS_AROUND
            step, parts = _parts(text.strip(), room, model)
            shown = [hashlib.sha256(part.encode()).hexdigest() for part in parts]
            for one in some:
                middle = starts.get(one.page, 0) + (one.start + one.end) // 2
                place = max(0, min(len(parts) - 1, (middle - step // 2) // step))
                asked.append((one, digest([identity, shown[place], one.text]), Asked(parts[place], one.text)))
        return asked

    def _replies(self, asked: Mapping[str, Asked]) -> dict[str, ChatReply]:
        def ask(keys: list[str]) -> dict[str, ChatReply]:
            assert self.model is not None  # noqa: S101 - see above
            return dict(zip(keys, self.model.generate([asked[key].request() for key in keys]), strict=True))

        def encode(reply: ChatReply) -> str | None:
            return None if reply.error else "" if reply.truncated else " ".join(reply.text.split())

        work = Work("context", ask, encode, ChatReply, 16)
        replies = work.recall(self.memory, asked)
        if self.asks:
            made = work.do(self.memory, [key for key in asked if key not in replies])
            replies |= {key: one if one.error else ChatReply(encode(one) or "") for key, one in made.items()}
        return replies


def late_problem(model: Any, name: str = "the embedding model") -> str:
    """Return why a model cannot embed chunks within their documents, '' where it can."""
    found: str = getattr(model, "late_problem", _NO_TOKENS.format(name))
    return found


def _parts(text: str, room: int, model: ChatModel) -> tuple[int, list[str]]:
    """Return parts of a text that overlap by half, of at most `room` tokens each; and how far apart they begin."""
    width = max(len(text), 1)
    while True:
        step = max(1, width // 2)
        parts = [text[start : start + width] for start in range(0, max(1, len(text) - step), step)]
        if width <= _NARROWEST or all(model.count_tokens(part) <= room for part in parts):
            return step, parts
        width = max(_NARROWEST, width * 3 // 4)


@dataclass(frozen=True)
class ChildVectors:
    """How children become vectors, and which store holds them."""

    embedder: RememberedEmbedder
    store: StoreConfig
    override: Any = None  # an object in place of the store that is named
    contexts: Contexts = Contexts()

    def identity(self) -> Mapping[str, Any]:
        """Return whatever can change what a search in them finds, beside the children."""
        return {
            "format": _VECTORS_FORMAT,
            "embedder": dict(self.embedder.identity()),
            "store": registry.identity(self.store, self.override),
            **self.contexts.identity(),
        }

    def folder(self, searched: Path) -> Path:
        """Return where they lie below the folder `searched`; they may not be there."""
        return searched / f"vectors-{digest(self.identity())[:32]}"
