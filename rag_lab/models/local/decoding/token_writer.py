"""Writes given bytes in a model's tokens, without its tokenizer, which begins no text in the middle of a character."""

from __future__ import annotations

from collections.abc import Collection, Sequence


class TokenWriter:
    """`written` is what each token writes, by its number; `barred` are those that text may not be written with."""

    def __init__(self, written: Sequence[bytes], barred: Collection[int]) -> None:
        self._tokens = {text: token for token, text in enumerate(written) if text and token not in barred}
        self._longest = max(map(len, self._tokens), default=0)

    def spelled(self, text: bytes) -> list[int] | None:
        """Return one token a byte, or None where there is none for one of them."""
        found = [self._tokens.get(bytes([byte])) for byte in text]
        known = [token for token in found if token is not None]
        return known if len(known) == len(found) else None

    def written(self, text: bytes) -> list[int]:
        """Return few tokens, the longest that fits first, as far as there are any."""
        tokens, start = [], 0
        while start < len(text):
            ends = range(min(start + self._longest, len(text)), start, -1)
            end = next((end for end in ends if text[start:end] in self._tokens), None)
            if end is None:
                break
            tokens.append(self._tokens[text[start:end]])
            start = end
        return tokens
