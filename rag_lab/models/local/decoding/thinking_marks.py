"""The tokens by which a model opens and closes its thought, where its tokenizer has one for each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_OPEN, _CLOSE = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class ThinkingMarks:
    """`closing` ends a thought that has no end of its own, and `after` stands between a thought and a reply."""

    open: int
    close: int
    closing: tuple[int, ...]
    after: tuple[int, ...]

    def opened_in(self, prompt: list[int]) -> bool:
        """Tell whether the prompt leaves a thought open, as templates of models do that always think."""
        last = next((token for token in reversed(prompt) if token in (self.open, self.close)), self.close)
        return last == self.open


@lru_cache(maxsize=4)
def thinking_marks(tokenizer: Any) -> ThinkingMarks | None:
    """Return the marks, or None for a tokenizer that has no token for each."""
    vocabulary = tokenizer.get_vocab()
    if _OPEN not in vocabulary or _CLOSE not in vocabulary:
        return None
    close, after = vocabulary[_CLOSE], _ids(tokenizer, "\n\n")
    return ThinkingMarks(vocabulary[_OPEN], close, (*_ids(tokenizer, "\n"), close, *after), after)


def _ids(tokenizer: Any, text: str) -> tuple[int, ...]:
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
