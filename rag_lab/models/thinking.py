"""Splits `<think>…</think>` off a model's text, and gives models that cannot stop thinking the room that they need."""

from __future__ import annotations

import json
from dataclasses import replace

from rag_lab.models.protocols import ChatRequest

_OPEN, _CLOSE = "<think>", "</think>"


def split_thinking(text: str) -> tuple[str, str]:
    """Return (text without thinking, thinking), both stripped of surrounding whitespace.

    A closing mark alone ends thinking that the prompt had opened; thinking that was never closed leaves no text. A text
    that is a JSON object is all text, whatever marks stand in its strings.

    Example:
        >>> split_thinking("<think>two of them</think> It is 4.")
        ('It is 4.', 'two of them')
    """
    if _is_object(text):
        return text.strip(), ""
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


def _is_object(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(text, strict=False), dict)
    except (ValueError, RecursionError):
        return False


def with_least_thinking(model: object, request: ChatRequest) -> ChatRequest:
    """Return `request` with no less thinking than `model` does at the least (`least_thinking_tokens`; else none)."""
    least: int = getattr(model, "least_thinking_tokens", 0)
    return replace(request, thinking_tokens=least) if request.thinking_tokens < least else request
