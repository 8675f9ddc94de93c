"""The contract of a splitter, ours, and custom ones, whose pieces become spans of the text.

Characters: LangChain's `RecursiveCharacterTextSplitter` decides where to cut, below headings where asked. Its own
`start_index` is a text search that can land on an earlier copy of repeated text, so the offsets are worked out here
instead.

Sentences: as many as fit a number of words (`sentences`), or as long as they stay on their subject (`semantic`). The
latter is Kamradt's "semantic chunking" (2023), as in LangChain's `SemanticChunker`: each sentence is embedded with its
neighbours, and the text is cut where the cosine distance to the next is above a percentile of all distances.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from itertools import accumulate, pairwise
from operator import itemgetter
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar, Protocol, cast

import numpy as np

from rag_lab._kit.custom_code import CustomCode, CustomCodeError
from rag_lab._kit.digest import source_digest
from rag_lab._kit.registry import Module, from_object
from rag_lab.corpus import spans as text_spans
from rag_lab.corpus.config import SPLITTERS, CorpusConfig
from rag_lab.corpus.spans import Span
from rag_lab.errors import ConfigError
from rag_lab.models.protocols import Embedder
from rag_lab.models.truncation import TokenLength

LANGCHAIN = "split_text"  # the method of LangChain's splitters
_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True, slots=True)
class Unsplit:
    """Why a text could not be split; what is split of others stays."""

    reason: str


class Splitter(Protocol):
    """Cuts texts into pieces. The constructor only stores parameters."""

    def identity(self) -> Mapping[str, Any]:
        """Whatever changes where a text is cut, as JSON values."""

    def split(self, texts: Sequence[str]) -> Sequence[list[Span] | Unsplit]:
        """Return for each text the half-open spans of its pieces, in order of their start; ours always can.

        No piece is blank, or begins or ends with whitespace. Together they hold every character that is not whitespace,
        and none begins or ends within a table row (`spans.row_spans`); what custom splitters leave out is said by
        `losses`.
        """


@dataclass(frozen=True)
class BuiltInSplitter:
    """A splitter whose fields are all that changes where it cuts, with `version`, raised when its code does."""

    name: ClassVar[str]
    version: ClassVar[int]
    keys: ClassVar[Mapping[str, str]]  # the key of the configuration that a field is, where its name is another

    def identity(self) -> Mapping[str, Any]:
        """Return name, version and fields; of an embedding model its identity."""
        every, models = {field.name: getattr(self, field.name) for field in fields(self)}, ("embedder", "length")
        values = {name: value for name, value in every.items() if value is not None}
        found = {name: dict(value.identity()) if name in models else value for name, value in values.items()}
        return {"name": self.name, "version": self.version, **found}


class CustomSplitter:
    """A function `(text) -> pieces or (start, end) spans`, a `Splitter`, or LangChain's `TextSplitter`.

    It is called for one text at a time. Pieces are found in the text, each after the one before; they may overlap.
    """

    def __init__(self, module: Module) -> None:
        value = module.value
        self._is_whole = callable(getattr(value, "split", None)) and callable(getattr(value, "identity", None))
        method = "split" if self._is_whole else LANGCHAIN if hasattr(value, LANGCHAIN) else None
        self._code = CustomCode(module, f"splitter {module.name!r}", method)
        self._state: Any = None
        if self._is_whole:
            self._state = dict(value.identity())
        elif method and not is_dataclass(value):
            self._state = _state(value, self._code.what)

    def identity(self) -> Mapping[str, Any]:
        """The module's source, and what it is set to."""
        return {"version": 1, "code": dict(self._code.identity()), "state": self._state}

    def split(self, texts: Sequence[str]) -> list[list[Span] | Unsplit]:
        """Return for each text the spans of its pieces, or why there are none."""
        found: list[list[Span] | Unsplit] = []
        for text in texts:
            argument = [text] if self._is_whole else text
            try:
                found.append(self._code.call(argument, accept=partial(self._accepted, text)) if text.strip() else [])
            except CustomCodeError as error:
                found.append(Unsplit(f"{error}."))
        return found

    def losses(self, text: str, spans: Sequence[Span]) -> str:
        """Return what no splitter of ours does and this one did: text in no piece, rows that are cut; '' if neither."""
        left_out = reached = 0
        for start, end in sorted([*spans, (len(text), len(text))]):
            left_out += sum(map(str.isalnum, text[reached:start]))
            reached = max(reached, end)
        cuts = {edge for span in spans for edge in span}
        n_rows = sum(any(start < cut < end for cut in cuts) for start, end in text_spans.row_spans(text)) if cuts else 0
        losses = [f"{left_out:,} letters and digits in no piece, so never found"] if left_out else []
        losses += [f"{n_rows:,} table row{'s are' if n_rows > 1 else ' is'} cut"] if n_rows else []
        return f"the {self._code.what}: {'; '.join(losses)}." if losses else ""

    def _accepted(self, text: str, returned: Any) -> list[Span]:
        what = self._code.what
        if self._is_whole:
            returned = returned[0] if isinstance(returned, Sequence) and len(returned) == 1 else None
        if isinstance(returned, str | bytes | Mapping) or not hasattr(returned, "__iter__"):
            raise CustomCodeError(f"the {what} returned {type(returned).__name__}, not a list of pieces or spans")
        pieces = [getattr(piece, "page_content", piece) for piece in returned]
        if not pieces:
            raise CustomCodeError(f"the {what} returned no piece of a text of {len(text):,} characters")
        if all(isinstance(piece, str) for piece in pieces):
            return _places(text, pieces, what)
        spans: list[Span] = []
        for span in pieces:
            try:
                start, end = map(int, span)
            except (TypeError, ValueError):
                kind = type(span).__name__
                raise CustomCodeError(f"the {what} returned {kind} where a piece or a span is due") from None
            if not 0 <= start < end <= len(text):
                raise CustomCodeError(
                    f"the {what} returned the span {start}-{end} of a text of {len(text):,} characters"
                )
            start, end = text_spans.trim(text, start, end)
            if start >= end:
                raise CustomCodeError(f"the {what} returned a blank piece")
            spans.append((start, end))
        return sorted(spans)


def _places(text: str, pieces: Sequence[str], what: str) -> list[Span]:
    """Return where the pieces stand: right after the one before, else as early as they go on beyond it."""
    spans: list[Span] = []
    start = end = 0
    for number, piece in enumerate(map(str.strip, pieces), start=1):
        if not piece:
            raise CustomCodeError(f"the {what} returned a blank piece")
        follows = end + len(text[end:]) - len(text[end:].lstrip())
        place = follows if text.startswith(piece, follows) else text.find(piece, max(start, end - len(piece) + 1))
        place = text.find(piece, start) if place < 0 else place
        if place < 0:
            shown = " ".join(piece.split())[:40]
            raise CustomCodeError(
                f"the {what} returned piece {number} ({shown!r}), which does not stand in the text there"
            )
        start, end = place, max(end, place + len(piece))
        spans.append((place, place + len(piece)))
    return spans


def _state(made: Any, what: str) -> dict[str, str]:
    """Return the settings of an object that is no dataclass."""
    found = {}
    for name, value in sorted(vars(made).items()):
        items = value if isinstance(value, list | tuple) else (value,)
        if isinstance(value, FunctionType | BuiltinFunctionType | type):
            found[name] = f"{value.__module__}.{value.__qualname__} {source_digest(value)}"
        elif all(isinstance(item, _PLAIN) for item in items):
            found[name] = repr(value)
        else:
            raise ConfigError(
                f"The {what} has a {type(value).__name__} as its {name.lstrip('_')}, so its results could not be told "
                "from another's; name the function that makes it: langchain:module:function."
            )
    return found


def splitter_of(config: CorpusConfig, embedder: Embedder | None, override: Any = None) -> Splitter:
    """Return the splitter that `config` names, or `override`: an object in its place."""
    if override is not None and not isinstance(override, type) and hasattr(override, LANGCHAIN):
        kind = type(override)
        return CustomSplitter(Module(kind.__name__, override, source_digest(kind)))
    if override is not None:
        return CustomSplitter(from_object(override, SPLITTERS))
    found = SPLITTERS.find(config.splitter)
    if config.splitter in SPLITTERS.built_in:
        chosen: type[BuiltInSplitter] = found.value
        names = [field.name for field in fields(chosen)]
        values = {name: getattr(config, key) for name in names if hasattr(config, key := chosen.keys.get(name, name))}
        size = config.chunk_tokens if "length" in names else None
        if embedder is None and (size or "embedder" in names):
            raise ConfigError(
                f"The {chosen.name} splitter needs an embedding model; give one, or another corpus.splitter."
            )
        if "embedder" in names:
            values["embedder"] = embedder
        if size:
            overlap = size * config.chunk_overlap // config.chunk_size
            values |= {"length": TokenLength(embedder), "size": size, "overlap": overlap}
        return cast(Splitter, chosen(**values))
    return CustomSplitter(found)


@dataclass(frozen=True)
class Recursive(BuiltInSplitter):
    """Pieces of at most `size` characters that share at most `overlap` with their neighbours; or tokens by `length`."""

    name = "recursive"
    version = 1
    keys: ClassVar[Mapping[str, str]] = {"size": "chunk_size", "overlap": "chunk_overlap"}

    size: int
    overlap: int
    length: TokenLength | None = None

    def split(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the spans of the pieces; see `Splitter`."""
        return [split_spans(text, [(0, len(text))], self.size, self.overlap, self.length) for text in texts]


def split_spans(
    text: str, parts: Iterable[Span], size: int, overlap: int, length: TokenLength | None = None
) -> list[Span]:
    """Return the half-open spans of the pieces of each part, in order, without surrounding whitespace or blank pieces.

    Parts are spans of `text`: a line's end alone may look like a table row. With a `length`, sizes are tokens.
    """
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    # Whitespace is kept, so that the pieces are exact substrings which leave no gap between them.
    size = size if length is None else max(length.room(size), overlap + 1)
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=overlap, strip_whitespace=False, length_function=length or len
    )

    def measured(start: int, end: int) -> int:
        # The library counts the indentation of a row and the line ends around it.
        line = text.rfind("\n", 0, start)
        return end - line + 1 if length is None else length(text[max(line, 0) : end + 1])

    rows = [row for row in text_spans.row_spans(text) if measured(*row) >= size]
    spans: list[Span] = []
    for part in parts:
        # Rows that do not fit a piece stand alone. Shorter ones need no care: they are lines, none of which is cut.
        first, last = bisect_left(rows, part[0], key=itemgetter(0)), bisect_right(rows, part[1], key=itemgetter(1))
        for (_, before), row in pairwise([(part[0], part[0]), *rows[first:last], (part[1], part[1])]):
            for start, end in text_spans.blocks(text, before, row[0]):
                pieces = splitter.split_text(text[start:end])
                shared = overlap if length is None else max(map(len, pieces), default=0)
                found = text_spans.piece_spans(text[start:end], pieces, shared)
                spans += [(start + one, start + other) for one, other in found]
            spans.append(row)
    return text_spans.trimmed(text, spans)


@dataclass(frozen=True)
class MarkdownSections(Recursive):
    """Sections first, then pieces of at most `size` characters that share at most `overlap`."""

    name = "markdown"
    version = 2

    def split(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the spans of the pieces; see `Splitter`."""
        return [split_spans(text, section_spans(text), self.size, self.overlap, self.length) for text in texts]


def section_spans(text: str) -> list[Span]:
    """Return the spans of what stands before the first heading, and of each section; together they are the text."""
    found = text_spans.headings(text)
    bare = {after.start for before, after in pairwise(found) if not text[before.end : after.start].strip()}
    opening = [heading.start for heading in found if heading.start not in bare]
    return [(start, end) for start, end in pairwise([0, *opening, len(text)]) if start < end]


@dataclass(frozen=True)
class Sentences(BuiltInSplitter):
    """Pieces of whole sentences.

    A text of fewer than `whole_below` words is one piece. A sentence of more than `max_words` is cut between words. A
    text whose sentences make fewer than `min_pieces` is cut between words throughout, into pieces of `max_words` with
    `overlap_words`: n words without table rows make max(1, ceil((n - overlap_words) / (max_words - overlap_words))).
    """

    name = "sentences"
    version = 2
    keys: ClassVar[Mapping[str, str]] = {"max_words": "chunk_words"}

    max_words: int
    overlap_words: int
    min_pieces: int
    whole_below: int = 0

    def split(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the spans of the pieces; see `Splitter`."""
        found = []
        for text in texts:
            counted = text_spans.words(text)
            if len(counted) < self.whole_below:
                pieces = text_spans.trimmed(text, [(0, len(text))])
            else:
                pieces = self._packed(text_spans.sentences_and_words(text, counted, self.max_words), counted)
                if len(pieces) < self.min_pieces:
                    pieces = self._packed(text_spans.sentences_and_words(text, counted, 0), counted)
            found.append(pieces)
        return found

    def _packed(self, units: Sequence[Span], counted: Sequence[Span]) -> list[Span]:
        """Put units together, as many as fit; a unit that does not fit stands alone. `counted` are the words."""
        lengths = [stop - start for start, stop in (text_spans.words_in(counted, unit) for unit in units)]
        pieces: list[Span] = []
        first = 0
        while first < len(units):
            last, total = first + 1, lengths[first]
            while last < len(units) and total + lengths[last] <= self.max_words:
                total += lengths[last]
                last += 1
            pieces.append((units[first][0], units[last - 1][1]))
            if last == len(units):
                break
            # The next piece begins so that it repeats some words and still holds unit `last`.
            start, shared = last, 0
            room = min(self.overlap_words, self.max_words - lengths[last])
            while start - 1 > first and shared + lengths[start - 1] <= room:
                start -= 1
                shared += lengths[start]
            first = start
        return pieces


@dataclass(frozen=True)
class Semantic(BuiltInSplitter):
    """Runs of sentences between breakpoints, distances above `percentile`; a longer run is cut by characters."""

    name = "semantic"
    version = 1
    keys: ClassVar[Mapping[str, str]] = {"percentile": "breakpoint_percentile", **Recursive.keys}

    embedder: Embedder
    percentile: float
    size: int
    overlap: int
    length: TokenLength | None = None

    def split(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the spans of the pieces; see `Splitter`. The sentences of all texts are embedded in one call."""
        units = [text_spans.sentence_units(text) for text in texts]
        windows = [  # each sentence with the one before and the one after
            text[spans[max(0, n - 1)][0] : spans[min(len(spans) - 1, n + 1)][1]]
            for text, spans in zip(texts, units, strict=True)
            for n in range(len(spans))
        ]
        vectors = self.embedder.embed_documents(windows) if windows else np.zeros((0, 0), np.float32)
        bounds = pairwise(accumulate((len(spans) for spans in units), initial=0))
        found = []
        for text, spans, (start, end) in zip(texts, units, bounds, strict=True):
            breaks = [0, len(spans)] if spans else []  # the sentences at which a run begins, and their number
            if len(spans) > 1:
                distances = 1 - np.einsum("ij,ij->i", vectors[start : end - 1], vectors[start + 1 : end])
                far = np.flatnonzero(distances > np.percentile(distances, self.percentile))
                breaks[1:1] = [int(number) + 1 for number in far]
            runs = [(spans[first][0], spans[last - 1][1]) for first, last in pairwise(breaks)]
            found.append(split_spans(text, runs, self.size, self.overlap, self.length))
        return found
