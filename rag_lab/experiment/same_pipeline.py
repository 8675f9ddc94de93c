"""Which variants cannot differ by construction: what tells them apart is a setting that nothing in them reads.

A dense search has no analyzer, a pipeline without HyDE no rule for it. Such variants would be run for nothing, would
dilute the effect of the setting where it matters, and would count in the correction for many comparisons. Two variants
are the same where their stages have the same identities, under which their results are remembered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from rag_lab._kit.digest import digest
from rag_lab._kit.wording import listing
from rag_lab.config import PipelineConfig, choices_of, dotted_keys
from rag_lab.errors import RagLabError
from rag_lab.experiment.design import Expansion, Variant
from rag_lab.experiment.stage_identities import Readers, models_in, stage_identities
from rag_lab.models.config import ModelsConfig
from rag_lab.runs.omissions import SamePipeline, same_pipeline_sentences
from rag_lab.stages.steps import STEPS, step_of
from rag_lab.stores.analyzer import analyzer_for

_ANALYZER = "retrieval.analyzer"
_MISSING_READERS = {
    "answers": "no question is answered",
    "contexts": "no metric reads the context",
    "turns": "no question has turns before it",
}


def run_once(expansion: Expansion, readers: Readers) -> Expansion:
    """Return the variants without those that are the same pipeline as an earlier one by construction, each named."""
    seen: dict[str, Variant] = {}
    run_as: dict[str, str] = {}
    same: list[SamePipeline] = []
    reasons = _Reasons(readers)
    for variant in expansion.variants:
        first = seen.setdefault(digest(effective(variant.config, readers)), variant)
        run_as[variant.variant_id] = first.variant_id
        if first is not variant:
            why = reasons.why_same(variant.config, first.config)
            same.append(SamePipeline(variant.label, dict(variant.changes), first.variant_id, why))
    before = [replace(one, run_as=run_as.get(one.run_as, one.run_as)) for one in expansion.same]
    notices = [*expansion.notices, *same_pipeline_sentences(same)]
    chosen = sorted({one.config.models.generation for one in expansion.variants} - {ModelsConfig().generation})
    if readers.answers and chosen and all(one.config.answer.name == "extract" for one in expansion.variants):
        notices.append(
            f"{listing(chosen)} answers nothing, since answer.name is extract; set answer.name=llm to ask the model."
        )
    return Expansion(tuple(seen.values()), tuple(notices), (*before, *same))


def effective(config: PipelineConfig, readers: Readers) -> dict[str, Any]:
    """Return all that can change a result: pipelines that have the same do the same with every question.

    Where a module or a prompt cannot be used here, that is the whole configuration.
    """
    try:
        return _effective(config, readers)
    except RagLabError:
        return config.flat()


def _effective(config: PipelineConfig, readers: Readers) -> dict[str, Any]:
    stages = stage_identities(config, readers)
    return {"stages": stages, **({"on_truncation": config.on_truncation} if any(models_in(stages)) else {})}


def settings_without_effect(config: PipelineConfig, keys: Collection[str]) -> list[str]:
    """Return a sentence for each reason why some of the set `keys` change nothing, with what would let them."""
    reasons, defaults = _Reasons(Readers()), PipelineConfig().flat()
    idle: dict[str, list[str]] = {}
    for key in keys:
        if key == "models.generation" and not config.answer.asks_model:
            idle.setdefault(f"answer.name is {config.answer.name}", []).append(key)
        elif config.flat()[key] != defaults[key]:
            with suppress(RagLabError):  # of what cannot be used, which is said where it is used
                if not reasons.is_read(config, key, defaults[key]):
                    idle.setdefault(reasons.where(config, key, defaults[key]), []).append(key)
    cure = "; set answer.name=llm to ask the model"
    return [
        f"Nothing reads {listing(found)} where {where}{cure if 'answer.name' in where else ''}."
        for where, found in idle.items()
    ]


class _Reasons:
    """Finds out which other setting would let a key be read."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers
        self._found: dict[str, str] = {}

    def why_same(self, one: PipelineConfig, other: PipelineConfig) -> str:
        """Return why two pipelines are the same: for each group of keys that differ, where nothing reads it."""
        now, before = one.flat(), other.flat()
        groups: dict[str, list[str]] = {}
        reasons = []
        for key in (key for key in now if now[key] != before[key]):
            chosen = {analyzer_for(values[_ANALYZER], self._readers.language) for values in (now, before)}
            if key == _ANALYZER and self._readers.language and len(chosen) == 1:
                reasons.append(f"`auto` is {chosen.pop()} for this dataset")
            else:
                groups.setdefault(self.where(one, key, before[key]), []).append(key)
        told = [f"nothing reads {listing(keys)} where {where}" for where, keys in groups.items()]
        return ", and ".join([*told, *reasons])

    def is_read(self, config: PipelineConfig, key: str, other: Any, readers: Readers | None = None) -> bool:
        """Tell whether another value of a key makes another pipeline."""
        readers = readers or self._readers
        return _effective(config, readers) != _effective(config.override({key: other}), readers)

    def where(self, config: PipelineConfig, key: str, other: Any) -> str:
        """Return which setting keeps a key from being read: one which, if it were another, would let it be read."""
        known = digest([key, {name: config.flat()[name] for name in _switches(key)}])
        if known not in self._found:
            self._found[known] = self._where(config, key, other)
        return self._found[known]

    def _where(self, config: PipelineConfig, key: str, other: Any) -> str:
        values = config.flat()
        for name, sentence in _MISSING_READERS.items():
            others: Any = {name: True}
            if not getattr(self._readers, name) and self.is_read(config, key, other, replace(self._readers, **others)):
                return sentence
        for switch in _switches(key):
            for choice in choices_of(switch, values[switch]):
                with suppress(RagLabError):
                    if self.is_read(config.override({switch: choice}), key, other):
                        return f"{switch} is {values[switch]}"
        step = step_of(key)
        return " and ".join(f"{switch} is {values[switch]}" for switch in (step.switches if step else ()))


def _switches(key: str) -> Iterator[str]:
    """Yield the keys that may keep another one from being read: of its own step first, then of all others."""
    step = step_of(key)
    near = [name for name in dotted_keys() if step and step_of(name) is step and choices_of(name, None)]
    switches = dict.fromkeys([*(step.switches if step else ()), *near, *(s for one in STEPS for s in one.switches)])
    return (name for name in switches if name != key)
