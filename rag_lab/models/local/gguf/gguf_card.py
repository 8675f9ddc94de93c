"""What a GGUF file tells of thinking and sampling: its chat template, the sampling it carries, its family's documents.

Sampling: `general.sampling.*`, which converters copy from `generation_config.json`. Files that are older carry none;
Qwen3's and DeepSeek-R1's are then those of their model cards ("Best Practices", "Usage Recommendations"): greedy
thinking goes in circles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_lab.models.protocols import ChatRequest

_THINKING_MARKS = ("<think", "enable_thinking", "reasoning_content", "<|channel|>")
_CARRIED = {"temperature": "temp", "top_p": "top_p", "top_k": "top_k", "min_p": "min_p"}
_QWEN3 = (
    {"temperature": 0.6, "top_p": 0.95, "top_k": 20, "min_p": 0.0},
    {"top_p": 0.8, "top_k": 20, "min_p": 0.0},
)
_DEEPSEEK_R1 = ({"temperature": 0.6, "top_p": 0.95}, {"top_p": 0.95})
_DOCUMENTED = {"qwen3": _QWEN3, "deepseek-r1": _DEEPSEEK_R1}  # with thinking, without
_FALLBACK_TEMPERATURE = 0.6  # of thoughts that no card says anything of


@dataclass(frozen=True)
class GgufCard:
    """A file's metadata, as far as replies depend on it."""

    thinks: bool
    thinking: Mapping[str, float]
    plain: Mapping[str, float]

    def sampling(self, request: ChatRequest) -> dict[str, float]:
        """Return the sampling of a request: what it says, else what is named here; the rest is llama.cpp's own.

        A temperature of 0 is greedy, but for thoughts, which then have the card's temperature.
        """
        thinking = self.thinks and request.thinking
        named = self.thinking if thinking else self.plain
        temperature = request.temperature or (named.get("temperature", _FALLBACK_TEMPERATURE) if thinking else 0.0)
        return {**named, **request.sampling, "temperature": temperature} if temperature else {"temperature": 0.0}


def gguf_card(metadata: Mapping[str, Any]) -> GgufCard:
    """Return the card in a file's metadata (`gguf_metadata`); an empty mapping is a file that tells nothing."""
    template = str(metadata.get("tokenizer.chat_template", ""))
    carried = {
        name: metadata[f"general.sampling.{key}"]
        for name, key in _CARRIED.items()
        if f"general.sampling.{key}" in metadata
    }
    names = " ".join(str(metadata.get(f"general.{key}", "")) for key in ("architecture", "basename", "name")).lower()
    family = next((name for name in _DOCUMENTED if name in names.replace(" ", "-")), "")
    thinking, plain = _DOCUMENTED.get(family, ({}, {}))
    thinks = any(mark in template for mark in _THINKING_MARKS)
    return GgufCard(thinks, {**thinking, **carried}, {**carried, **plain} if thinks else {})
