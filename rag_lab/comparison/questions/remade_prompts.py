"""What models were sent that no trace holds, made again by the stages' own code from what the trace does hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rag_lab.records import Trace
from rag_lab.stages.chat_stage import written
from rag_lab.stages.query import prompts
from rag_lab.stages.query.hyde import Hyde, hyde_messages
from rag_lab.stages.query.understand import NOT_ASKED, LlmUnderstanding
from rag_lab.stages.stage import OFF

Remade = Callable[[Trace], str]  # empty where the model was not asked


def remade_prompts(manifest: Mapping[str, Any]) -> dict[str, Remade]:
    """Return for each stage of the query how its prompt is made again.

    A stage is left out where that could be another text than the model got: nothing says what ran (a run that is not
    done), the run's prompts had another version, or a variant had a stage of somebody's own.
    """
    ran = manifest.get("models", {})
    return {stage: prompt for stage, prompt in _PROMPTS.items() if _is_ours(ran.get(stage, []))}


def _is_ours(identities: list[Mapping[str, Any]]) -> bool:
    return bool(identities) and all(identity.get("prompts") == prompts.VERSION for identity in identities)


def _understanding(trace: Trace) -> str:
    return (
        written(prompts.understanding_messages(trace.question.text, trace.remembered))
        if _ran(trace, LlmUnderstanding.name)
        else ""
    )


def _hyde(trace: Trace) -> str:
    route = trace.hyde_route
    return written(hyde_messages(trace, route)) if route in prompts.HYDE and _ran(trace, Hyde.name) else ""


def _ran(trace: Trace, stage: str) -> bool:
    return any(record.stage == stage and record.reason not in (OFF, NOT_ASKED) for record in trace.stages)


_PROMPTS: dict[str, Remade] = {LlmUnderstanding.name: _understanding, Hyde.name: _hyde}
