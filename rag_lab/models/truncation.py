"""How much models read of a text, a pair or a prompt, and how many tokens lie beyond that, which have no effect.

A model truncates what is longer without a word: its vectors and scores then stand for the beginning alone. Servers
truncate a prompt at their window, at its beginning or in its middle; nobody here has their tokenizer, so what is found
is what must be missing: at least so many tokens.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from rag_lab.errors import ConfigError
from rag_lab.models.protocols import ChatRequest, TextKind

_PIECES = re.compile(r"[^\W\d_]+|\d|[^\w\s]|_|\s+")
_BYTES_A_TOKEN = 3  # of one word; tokenizers of English reach four and more
_TOKENS_AROUND = 8  # what a chat template may put around a message
_TOKENS_OF_IMAGE = 2000  # of a page at 150 dpi: six tiles of Gemini's or OpenAI's, and some more
Pair = tuple[str, str]
_CHARS_A_TOKEN = 24  # of one word; tokenizers for chat have hardly any longer ones
_OTHER_SCRIPTS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CHARS_OTHERWISE = 6  # of scripts that put no space between words
_WINDOWS = 1024  # tokens of which servers' windows are multiples
_TEMPLATE_TOKENS = 64  # of a chat template: a prompt that fills a window has at least the window less these
_NO_COUNT = "corpus.chunk_tokens is {}, but {} counts no tokens: set corpus.chunk_size in its place, or choose minilm."
_READS_LESS = "corpus.chunk_tokens is {}, but {} reads {} tokens: set at most that, or choose a model that reads more."
_LENGTHS_KEPT = 100_000  # of texts that were measured
NOTICED = 0.02  # of what is read: less decides no comparison


def is_unlike(one: float | None, other: float | None) -> bool:
    """Tell whether two shares of text that was not read make a difference; without an embedding model none does."""
    return one is not None and other is not None and abs(one - other) >= NOTICED


def estimated_tokens(text: str) -> int:
    """Return an upper estimate of tokens: a token for three bytes of a word, each digit, each mark, each line break."""
    total = 0
    for piece in _PIECES.findall(text):
        if piece.isspace():
            total += piece.count("\n") + (len(piece) > 1)  # one space belongs to the word after it
        else:
            total += -(-len(piece.encode()) // _BYTES_A_TOKEN)
    return total


def request_tokens(request: ChatRequest) -> int:
    """Return an upper estimate of the tokens that a remote model reads for `request`, schema and images included."""
    n_images = sum(len(message.images) for message in request.messages)
    return sum(estimated_tokens(text) + _TOKENS_AROUND for text in request_texts(request)) + _TOKENS_OF_IMAGE * n_images


def request_texts(request: ChatRequest) -> list[str]:
    """Return the texts that a request sends."""
    schema = [json.dumps(request.json_schema)] if request.json_schema is not None else []
    return [message.content for message in request.messages] + schema


@runtime_checkable
class ReadsTexts(Protocol):
    """An embedding model that says how much of a text it reads."""

    most_tokens: int | None  # of one text that it reads; None where that is not known

    def text_tokens(self, texts: Sequence[str], kind: TextKind) -> list[int]:
        """Return how many tokens each text has for it, with what it puts around it; the weights are not loaded."""


def most_tokens(model: Any) -> int | None:
    """Return the most tokens that a model reads of one text, or pair (`pair_tokens`); None where it does not say."""
    counts = isinstance(model, ReadsTexts) or hasattr(model, "pair_tokens")
    return getattr(model, "most_tokens", None) if counts else None


def truncated_of(model: Any, items: Sequence[str] | Sequence[Pair], kind: TextKind | None = None) -> list[int]:
    """Return the tokens of each text, or of each (question, passage), that the model never reads; 0 if it says nothing.

    `kind` is that of texts.
    """
    if (limit := most_tokens(model)) is None or not items:
        return [0] * len(items)
    counts = model.text_tokens(items, kind) if kind else model.pair_tokens(items)
    return [max(0, n - limit) for n in counts]


def fewest_tokens(text: str) -> int:
    """Return a lower bound of a text's tokens: one a word with a letter or digit, more of very long ones."""
    total = 0
    for word in text.split():
        n_chars = sum(map(str.isalnum, word))  # of marks and control characters some tokenizers make nothing
        dense = len(_OTHER_SCRIPTS.findall(word))
        total += max(int(n_chars > 0), dense // _CHARS_OTHERWISE + max(0, n_chars - dense) // _CHARS_A_TOKEN)
    return total


def truncated_in_prompt(request: ChatRequest, tokens_in: int) -> int:
    """Return how many tokens of a request a server that reports `tokens_in`, maybe its window, missed at the least."""
    fewest = sum(fewest_tokens(message.content) for message in request.messages)
    if fewest > tokens_in:
        return fewest - tokens_in
    is_window = tokens_in > 0 and tokens_in % _WINDOWS == 0
    return int(is_window and request_tokens(request) + _TEMPLATE_TOKENS > tokens_in)


@dataclass(frozen=True, slots=True)
class TokenLength:
    """Measures texts by the tokens of an embedding model, without those that it puts around each."""

    model: Any  # an embedding model
    _known: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    def identity(self) -> Mapping[str, Any]:
        """Return the model's."""
        found: Mapping[str, Any] = self.model.identity()
        return found

    @property
    def _inner(self) -> Any:
        return getattr(self.model, "inner", self.model)

    @property
    def is_ready(self) -> bool:
        """Whether the model can count here and now; weights of a hub cannot before they are here."""
        return isinstance(self._inner, ReadsTexts) and any(self._inner.text_tokens(["word"], "document"))

    def problem(self, size: int, name: str = "the embedding model") -> str:
        """Return why texts of `size` tokens cannot be cut for it; '' where they can, as far as is known here."""
        if not isinstance(self._inner, ReadsTexts):
            return _NO_COUNT.format(size, name)
        limit = self._inner.most_tokens
        return "" if limit is None or size <= limit else _READS_LESS.format(size, name, limit)

    def room(self, size: int) -> int:
        """Return the tokens that a text of `size` may have alone; a ConfigError if the model cannot count them."""
        if not (problem := self.problem(size)) and not self.is_ready:
            self._inner.embed_documents(["word"])
            problem = self.problem(size) or ("" if self.is_ready else _NO_COUNT.format(size, "the embedding model"))
        if problem:
            raise ConfigError(problem)
        return size - int(self.model.text_tokens([""], "document")[0])

    def __call__(self, text: str) -> int:
        """Return how many tokens a text has by itself."""
        if text not in self._known:
            if len(self._known) > _LENGTHS_KEPT:
                self._known.clear()
            whole, around = self.model.text_tokens([text, ""], "document")
            self._known[text] = int(whole - around)
        return self._known[text]


@dataclass(frozen=True, slots=True)
class Truncation:
    """The lengths of `n` texts for one model, which reads `limit` tokens of each."""

    limit: int
    n: int
    n_longer: int
    characters: int  # of all of them
    tokens: int  # of all of them, what the model puts around them included
    unread_tokens: int  # of these, beyond the limit

    @classmethod
    def of(cls, tokens: Sequence[int], characters: int, limit: int) -> "Truncation":
        """Return the numbers of texts that have so many tokens each."""
        beyond = [n - limit for n in tokens if n > limit]
        return cls(limit, len(tokens), len(beyond), characters, sum(tokens), sum(beyond))

    @property
    def share_longer(self) -> float:
        """The share of the texts that are longer than the model reads."""
        return self.n_longer / self.n if self.n else 0.0

    @property
    def share_truncated(self) -> float:
        """The share of all tokens that the model never reads."""
        return self.unread_tokens / self.tokens if self.tokens else 0.0

    def text(self, whose: str, model: str) -> str:
        """Say how many are cut and what is lost: `61% of the chunks are longer than minilm reads (256 tokens), ...`."""
        characters = round(self.limit * self.characters / self.tokens / 10) * 10 if self.tokens else 0
        return (
            f"{percent(self.share_longer)} of {whose} are longer than {short_name(model)} reads ({self.limit:,} "
            f"tokens, here about {characters:,} characters)"
        )


@dataclass(frozen=True, slots=True)
class TruncatedChildren:
    """How long children are for one embedding model, and the tokens beyond its limit by the id of each longer one."""

    total: Truncation
    longer: Mapping[str, int] = field(default_factory=dict)

    def of_hits(self, hits: Iterable[Any]) -> list[int]:
        """Return how many tokens of each hit's child were never embedded."""
        return [self.longer.get(hit.chunk_id, 0) for hit in hits]


def percent(share: float) -> str:
    """Write a share: `61%`, `0.4%`; what is there is never `0%`, nor all `100%` where something is not."""
    if not 0 < share < 1:
        return f"{share:.0%}"
    if share < 0.01:
        return f"{max(share, 0.001):.1%}"
    return f"{min(share, 0.99):.0%}" if share >= 0.985 else f"{share:.0%}"


def short_name(model: str) -> str:
    """Return a model's name without provider and options: `minilm`."""
    return model.partition(":")[2].partition("?")[0] or model
