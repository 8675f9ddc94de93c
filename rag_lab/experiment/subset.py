"""An experiment changed for one start of a sweep: settings that hold for all variants, and only some of these."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_lab._kit.digest import short_name
from rag_lab._kit.wording import listing
from rag_lab.errors import ConfigError, unknown_name
from rag_lab.experiment.config import Draft, ExperimentConfig
from rag_lab.experiment.design import Expansion
from rag_lab.experiment.designs.variant_id import variant_id
from rag_lab.experiment.experiment_error import ExperimentError

_LONGEST = 64  # of an experiment's name


def with_subset(draft: Draft, settings: Mapping[str, Any], only: Sequence[str]) -> Draft:
    """Return an experiment with `settings` (dotted keys) in all of its variants, of which `only` some are run.

    It gets a name of its own, and with it a run folder: what is left out or set otherwise replaces no earlier result.
    """
    if not settings and not only:
        return draft
    given = draft.config
    problems = [*draft.problems, *_varied(given, settings)]
    changed: dict[str, Any] = {"name": _name(given.name, settings, only), "only": [*given.only, *only]}
    if len(problems) == len(draft.problems):
        try:
            changed["base"] = given.base.override(settings)
            changed["variants"] = {name: config.override(settings) for name, config in given.variants.items()}
        except ConfigError as error:
            problems.append(str(error))
    return replace(draft, config=given.model_copy(update=changed), problems=tuple(problems))


def chosen(expansion: Expansion, only: Sequence[str]) -> Expansion:
    """Return the variants that `only` names, by id or label, and the baseline, with which they are compared; or all.

    Raises:
        ExperimentError: naming everything in `only` that is no variant.
    """
    if not only:
        return expansion
    ids = {v.label: v.variant_id for v in expansion.variants} | {v.variant_id: v.variant_id for v in expansion.variants}
    known = [v.variant_id for v in expansion.variants]
    if unknown := [unknown_name("variant", name, known) for name in only if name not in ids]:
        raise ExperimentError("only", unknown)
    named = {ids[name] for name in only}
    wanted = {*named, expansion.baseline.variant_id}
    variants = tuple(v for v in expansion.variants if v.variant_id in wanted)
    left_out = [v.variant_id for v in expansion.variants if v.variant_id not in wanted]
    notices = []
    if left_out:
        beside = (
            "" if wanted == named else f" {expansion.baseline.variant_id} runs, too: the others are compared with it."
        )
        notices = [f"{len(variants)} of {len(known)} variants are run, without {listing(left_out)}.{beside}"]
    return Expansion(variants, (*expansion.notices, *notices), expansion.same)


def _varied(given: ExperimentConfig, settings: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each setting of a key in which the variants differ."""
    differing = set(given.factors)
    if given.variants:
        flat = [config.flat() for config in given.variants.values()]
        differing = {key for key in flat[0] if any(other[key] != flat[0][key] for other in flat)}
    return [
        f"{key}: the variants differ in it, so that no value can be set for all; choose variants with --only."
        for key in settings
        if key in differing
    ]


def _name(name: str, settings: Mapping[str, Any], only: Sequence[str]) -> str:
    """Return a name that says what is changed: `ablation__final_k-3__only_hyde-always`."""
    parts = [name, *([variant_id(settings, among=settings)] if settings else [])]
    parts += [f"only_{'_'.join(only)}"] if only else []
    text = "__".join(re.sub(r"[^a-z0-9_-]+", "-", part.lower()).strip("-") for part in parts)
    return short_name(text, _LONGEST, [dict(settings), list(only)])
