"""Splits `<think>…</think>` off a model's text."""

from __future__ import annotations

_OPEN, _CLOSE = "<think>", "</think>"


def split_thinking(text: str) -> tuple[str, str]:
    """Return (text without thinking, thinking), both stripped of surrounding whitespace.

    A closing mark alone ends thinking that the prompt had opened; thinking that was never closed leaves no text.

    Example:
        >>> split_thinking("<think>two of them</think> It is 4.")
        ('It is 4.', 'two of them')
    """
    thoughts: list[str] = []
    before, closed, after = text.partition(_CLOSE)
    if closed and _OPEN not in before:
        thoughts, text = [before], after
    kept: list[str] = []
    while True:
        before, opened, rest = text.partition(_OPEN)
        kept.append(before)
        if not opened:
            break
        thought, _, text = rest.partition(_CLOSE)
        thoughts.append(thought)
    return "".join(kept).strip(), "\n".join(part.strip() for part in thoughts if part.strip())
