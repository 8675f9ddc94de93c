"""The contract of a splitter, and the one that a configuration names; pieces of a custom one become spans of text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import Any, ClassVar, Protocol, Self, cast

from rag_lab._kit.custom_code import CustomCode, CustomCodeError
from rag_lab._kit.digest import source_digest
from rag_lab._kit.registry import Module, from_object
from rag_lab.corpus.config import SPLITTERS, CorpusConfig
from rag_lab.corpus.spans import Span, row_spans, trim
from rag_lab.errors import ConfigError
from rag_lab.models.protocols import Embedder

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

        Pieces neither begin nor end with whitespace, and none is blank. Together they hold every character that is not
        whitespace. No piece begins or ends within a table row (`spans.row_spans`); a row longer than the size of a
        piece is a piece of its own. Splitters that others bring are not held to the last two: what they leave out and
        which rows they cut is said (`CustomSplitter.losses`).
        """


@dataclass(frozen=True)
class BuiltInSplitter:
    """A splitter whose fields are all that changes where it cuts, with `version`, raised when its code does."""

    name: ClassVar[str]
    version: ClassVar[int]
    keys: ClassVar[Mapping[str, str]]  # the key of the configuration that a field is, where its name is another

    @classmethod
    def of(cls, config: CorpusConfig, embedder: Embedder | None) -> Self:
        """Return what `config` asks for."""
        names = [field.name for field in fields(cls)]
        if "embedder" in names and embedder is None:
            raise ConfigError(
                f"The {cls.name} splitter needs an embedding model; give one, or another corpus.splitter."
            )
        values = {name: getattr(config, cls.keys.get(name, name)) for name in names if name != "embedder"}
        return cls(**values, **({"embedder": embedder} if "embedder" in names else {}))

    def identity(self) -> Mapping[str, Any]:
        """Return name, version and fields; of an embedding model its identity."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        found = {name: dict(value.identity()) if name == "embedder" else value for name, value in values.items()}
        return {"name": self.name, "version": self.version, **found}


class CustomSplitter:
    """A custom splitter, called for one text at a time.

    It is a function `(text) -> pieces or (start, end) spans`, an object that is called so, a `Splitter`, or a
    `TextSplitter` of LangChain's. Pieces are found in the text, each after the one before; they may overlap.
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
        n_rows = sum(any(start < cut < end for cut in cuts) for start, end in row_spans(text)) if cuts else 0
        losses = [f"{left_out:,} letters and digits in no piece, so never found"] if left_out else []
        losses += [f"{n_rows:,} table row{'s are' if n_rows > 1 else ' is'} cut"] if n_rows else []
        return f"the {self._code.what}: {'; '.join(losses)}." if losses else ""

    def _accepted(self, text: str, returned: Any) -> list[Span]:
        what = self._code.what
        if self._is_whole:
            returned = returned[0] if isinstance(returned, Sequence) and len(returned) == 1 else None
        if isinstance(returned, str | bytes | Mapping) or not hasattr(returned, "__iter__"):
            raise CustomCodeError(
                f"the {what} returned {type(returned).__name__} where a list of pieces or spans is due"
            )
        pieces = [getattr(piece, "page_content", piece) for piece in returned]
        if not pieces:
            raise CustomCodeError(f"the {what} returned no piece of a text of {len(text):,} characters")
        if all(isinstance(piece, str) for piece in pieces):
            return _found(text, pieces, what)
        return sorted(_checked(text, piece, what) for piece in pieces)


def _checked(text: str, span: Any, what: str) -> Span:
    try:
        start, end = map(int, span)
    except (TypeError, ValueError):
        raise CustomCodeError(f"the {what} returned {type(span).__name__} where a piece or a span is due") from None
    if not 0 <= start < end <= len(text):
        raise CustomCodeError(f"the {what} returned the span {start}-{end} of a text of {len(text):,} characters")
    start, end = trim(text, start, end)
    if start >= end:
        raise CustomCodeError(f"the {what} returned a blank piece")
    return start, end


def _found(text: str, pieces: Sequence[str], what: str) -> list[Span]:
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
        return cast(Splitter, found.value.of(config, embedder))
    return CustomSplitter(found)
