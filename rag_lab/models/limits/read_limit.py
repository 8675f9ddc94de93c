"""The contract of a model that says how much it reads, and what of a text or a pair lies beyond that.

A model cuts what is longer without a word: its vectors and scores then stand for the beginning alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

Kind = Literal["document", "query"]  # what an embedding model takes a text for: some put words of their own before it
Pair = tuple[str, str]


@runtime_checkable
class ReadsTexts(Protocol):
    """An embedding model that says how much of a text it reads."""

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of one text that it reads; None where that is not known."""

    def text_tokens(self, texts: Sequence[str], kind: Kind) -> list[int]:
        """Return how many tokens each text has for it, with what it puts around it; the weights are not loaded."""


@runtime_checkable
class ReadsPairs(Protocol):
    """A scorer that says how much of a question with its passage it reads."""

    @property
    def most_tokens(self) -> int | None:
        """The most tokens that it reads, of what `pair_tokens` counts; None where that is not known."""

    def pair_tokens(self, pairs: Sequence[Pair]) -> list[int]:
        """Return how many tokens of each pair count towards its limit; the weights are not loaded."""


def most_tokens(model: object) -> int | None:
    """Return the most tokens that a model reads of one text or pair; None where it does not say."""
    return model.most_tokens if isinstance(model, ReadsTexts | ReadsPairs) else None


def unread_of_texts(model: object, texts: Sequence[str], kind: Kind) -> list[int]:
    """Return the tokens of each text that the embedding model never reads: 0 where it does not say how much it does."""
    if not isinstance(model, ReadsTexts) or (limit := model.most_tokens) is None or not texts:
        return [0] * len(texts)
    return [max(0, n - limit) for n in model.text_tokens(texts, kind)]


def unread_of_pairs(model: object, pairs: Sequence[Pair]) -> list[int]:
    """Return the tokens of each (question, passage) that the scorer never reads; see `unread_of_texts`."""
    if not isinstance(model, ReadsPairs) or (limit := model.most_tokens) is None or not pairs:
        return [0] * len(pairs)
    return [max(0, n - limit) for n in model.pair_tokens(pairs)]
