"""What stands for a trace field that no one has computed yet: the largest value that the configuration lets it have.

A call that depends on such a field is counted as if it had to be made, and its prompt as long as it can become.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from rag_lab.config import PipelineConfig
from rag_lab.models.token_estimate import estimated_tokens
from rag_lab.records import Answer, Hit, Passage, Trace
from rag_lab.stages.query.prompts import GENERAL

_HIT = Hit("?", "?", "?", None, 0, 0, 0.0)


_FILLER = re.compile("\ue000([0-9]{1,9})\ue001")  # characters of no script: no text of a dataset looks so


def _filler(n_tokens: int) -> str:
    """Return a text that counts as this many tokens, and is short however many they are."""
    return f"\ue000{n_tokens}\ue001"


def counted_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of a text in which stand-ins may stand."""
    return estimated_tokens(_FILLER.sub("x", text)) + sum(int(n) - 1 for n in _FILLER.findall(text))


_STAND_INS: dict[str, Callable[[Trace, PipelineConfig], Any]] = {
    "proposed_query": lambda trace, config: trace.question.text,
    "search_query": lambda trace, config: trace.question.text,
    "hyde_route": lambda trace, config: GENERAL,
    "hypothetical": lambda trace, config: _filler(config.query.hyde_max_tokens),
    "phrasings": lambda trace, config: (trace.question.text,) * config.query.phrasings,
    "base_hits": lambda trace, config: (_HIT,) * config.retrieval.base_k,
    "hits.hyde": lambda trace, config: (_HIT,) * config.retrieval.hyde_k,
    "candidates": lambda trace, config: (_HIT,) * config.rerank.input_limit,
    "ranked": lambda trace, config: (_HIT,) * (2 * config.rerank.final_k),
    "passages": lambda trace, config: _passages(config),
    "raw_text": lambda trace, config: _filler(config.answer.max_tokens),
    "answer": lambda trace, config: Answer(_filler(config.answer.max_tokens)),
}


def stand_ins(trace: Trace, fields: Iterable[str], config: PipelineConfig) -> dict[str, Any]:
    """Return what stands for these fields of `trace`; one that nothing is asked by keeps its value."""
    return {name: _STAND_INS[name](trace, config) for name in fields if name in _STAND_INS}


def _passages(config: PipelineConfig) -> tuple[Passage, ...]:
    n = config.rerank.final_k
    text = _filler(config.answer.context_tokens // n)
    return tuple(Passage(number, "?", "?", None, 0, 0, text) for number in range(1, n + 1))
