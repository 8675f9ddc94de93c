"""The stages that a configuration asks for, from the ranked hits to the answer."""

from __future__ import annotations

from rag_lab.stages.answer.context_budget import budget_of
from rag_lab.stages.answer.generate import Generate
from rag_lab.stages.answer.own_context import ContextPlace
from rag_lab.stages.answer.own_reader import ReaderPlace
from rag_lab.stages.answer.parse import Parse
from rag_lab.stages.choose import stage_of
from rag_lab.stages.kinds import CONTEXTS, READERS
from rag_lab.stages.parts import Parts
from rag_lab.stages.stage import Stage


def context_stage(parts: Parts) -> Stage:
    """Return what assembles the context."""

    def place() -> ContextPlace:
        return ContextPlace(parts.index, budget_of(parts), parts.rerank.final_k)

    return stage_of(CONTEXTS, "context", parts.answer.context, parts, place)


def answer_stages(parts: Parts) -> tuple[Stage, ...]:
    """Return what answers from the context; nothing where answers are switched off."""
    if not parts.answer.is_on and "reader" not in parts.given:
        return ()
    stage = stage_of(READERS, "reader", parts.answer.name, parts, ReaderPlace)
    as_text = isinstance(stage, Generate) and stage.as_text
    return (stage,) if "answer" in stage.writes else (stage, Parse(as_text))
