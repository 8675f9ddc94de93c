"""Which stages the variants of an experiment share, and how many calls that leaves at most.

Variants whose keys agree up to a stage get that stage's results from the memory, so it is computed once for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rag_lab.config import PipelineConfig, digest, dotted_keys


@dataclass(frozen=True, slots=True)
class StageUse:
    """One stage in a plan: variants that use it, how many of those differ up to it, and model calls at most.

    `calls` is None where the stage calls no model that answers one question at a time.
    """

    stage: str
    variants: int
    distinct: int
    calls: int | None


@dataclass(frozen=True, slots=True)
class _Step:
    """A stage as the memory sees it: the keys that can change its result, upstream ones included."""

    name: str
    keys: tuple[str, ...]
    is_on: Callable[[PipelineConfig], bool] = lambda config: True
    calls: Callable[[PipelineConfig], int] | None = None  # for each question that reaches the stage
    answers: bool = False  # runs only for the questions that are answered


def _searches_by_class(config: PipelineConfig) -> bool:
    return config.query.rewrite != "none" or config.query.hyde == "classified"


def _section(name: str) -> tuple[str, ...]:
    return tuple(key for key in dotted_keys() if key.startswith(f"{name}."))


_INDEX = (*_section("corpus"), *_section("store"), "models.embedding", "models.vision")
_UNDERSTAND = ("models.understanding", "seed")
_REWRITE = (*_UNDERSTAND, "query.rewrite", "query.min_similarity", "models.embedding")
_HYDE = (*_REWRITE, "query.hyde", "query.class_to_hyde", "query.hyde_max_tokens", "models.hyde")
_PHRASINGS = (*_REWRITE, "query.phrasings")
_MERGE = (*_INDEX, *_HYDE, *_PHRASINGS, *_section("retrieval"), "rerank.input_limit")
_RERANK = (*_MERGE, "rerank.name", "rerank.passage", "rerank.retrieval_weight", "rerank.final_k",
           *_section("select"), "models.cross_encoder", "models.likelihood")  # fmt: skip
_GENERATE = (*_RERANK, *_section("answer"), "models.generation")
STEPS = (
    _Step("index", _INDEX),
    _Step("understand", _UNDERSTAND, _searches_by_class, lambda config: 1),
    _Step("rephrase", _PHRASINGS, lambda config: config.query.phrasings > 0, lambda config: 1),
    _Step("hyde", _HYDE, lambda config: config.query.hyde != "none", lambda config: 1),
    _Step("retrieve", _MERGE),
    _Step("rerank", _RERANK, lambda config: config.rerank.name != "none", lambda config: config.rerank.input_limit),
    _Step("generate", _GENERATE, lambda config: config.answer.name != "none", lambda config: 1, answers=True),
)


def stage_uses(configs: Sequence[PipelineConfig], questions: int, answered: int, repeats: int) -> list[StageUse]:
    """Return how the variants use each stage, in the order of the pipeline."""
    return [_use(step, configs, (answered if step.answers else questions) * repeats) for step in STEPS]


def _use(step: _Step, configs: Sequence[PipelineConfig], asked: int) -> StageUse:
    using = [config for config in configs if step.is_on(config)]
    distinct = {_identity(step, config): config for config in using}
    calls = None if step.calls is None else sum(step.calls(config) * asked for config in distinct.values())
    return StageUse(step.name, len(using), len(distinct), calls)


def _identity(step: _Step, config: PipelineConfig) -> str:
    flat = config.flat()
    return digest([flat[key] for key in step.keys])
