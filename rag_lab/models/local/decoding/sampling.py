"""How a reply is sampled: as its request says, else as the model's card does (`generation_config.json`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_lab.models.protocols import ChatRequest

_QWEN3 = ("qwen3", "qwen3_moe")
_QWEN3_PLAIN: Mapping[str, float] = {"temperature": 0.7, "top_p": 0.8, "top_k": 20}
"""Qwen3's `generation_config.json` is that of thinking; its model card documents these for replies without."""

_THINKING: Mapping[str, float] = {"temperature": 0.6, "top_p": 0.95, "top_k": 20}
"""Qwen3's documented settings of thinking, for cards that name no temperature: greedy thinking goes in circles."""

_GREEDY: Mapping[str, Any] = {"do_sample": False, "temperature": 1.0, "top_p": 1.0, "top_k": 50}
"""The library's own neutral values: it warns of a card's settings that greedy decoding does not use."""

_NEUTRAL: Mapping[str, float | None] = {"top_p": 1.0, "top_k": 0, "min_p": None}


def sampling_of(config: Any, card: Any, request: ChatRequest, thinks: bool) -> dict[str, Any]:
    """Return the arguments of `GenerationConfig` for a request that the model thinks about or not.

    `config` is the model's configuration, `card` its generation configuration. A temperature of 0 is greedy, but for
    thoughts, which then have the card's temperature.
    """
    thinking = thinks and request.thinking
    if not is_sampled(request, thinks):
        return dict(_GREEDY)
    named = _named(card)
    if thinking and "temperature" not in named:
        named = {**_THINKING, **named}
    elif thinks and not thinking and config.model_type in _QWEN3:
        named = {**named, **_QWEN3_PLAIN}
    temperature = request.temperature or named["temperature"]
    return {"do_sample": True, **_NEUTRAL, **named, **request.sampling, "temperature": temperature}


def is_sampled(request: ChatRequest, thinks: bool) -> bool:
    """Return whether the reply is sampled: by temperature, or because the model thinks."""
    return request.temperature > 0 or (thinks and request.thinking)


def _named(card: Any) -> dict[str, float]:
    """Return the settings that the card names."""
    found = {key: getattr(card, key, None) for key in ("temperature", "top_p", "top_k", "min_p")}
    return {key: value for key, value in found.items() if value is not None}
