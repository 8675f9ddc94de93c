"""The order in which the variants of a sweep run: those that need the same local models one after another.

So a machine that cannot hold all models at a time loads each few times. Where all of them are small enough for any
machine, the variants in which most stages ask a chat model run first: they take longest, and those beside them use what
they leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from pathlib import Path

from rag_lab._kit.machine import bytes_on_disk
from rag_lab.errors import ModelError
from rag_lab.experiment.design import Variant
from rag_lab.experiment.model_checks import kind_of_role, models_asked
from rag_lab.experiment.stage_identities import n_chats
from rag_lab.models.failover.names import alternatives
from rag_lab.models.providers import providers_of
from rag_lab.models.spec import split_name
from rag_lab.models.weights import find

_SMALL_MB = 2_000  # of weights, all models together


def in_model_order(
    variants: Sequence[Variant], metrics: Sequence[str], models: Callable[[Variant], Set[str]] | None = None
) -> list[Variant]:
    """Return the variants, the first (the baseline) first, then always one that needs the fewest models anew.

    Of several it is the one that lets go of the fewest, and then the one that stands first. Where all models are small
    together, the baseline is followed by the variants in which most stages ask a chat model.

    Args:
        variants: in the order of the plan.
        metrics: that score them, by name.
        models: which local models a variant needs; by its configuration where None.
    """
    needs = [(models or (lambda one: local_models(one, metrics)))(variant) for variant in variants]
    if are_small(set().union(*needs)):
        return [*variants[:1], *sorted(variants[1:], key=lambda variant: -n_chats(variant.config))]
    order, left = [0][: len(variants)], list(range(1, len(variants)))
    while left:
        held = needs[order[-1]]
        following = min(left, key=lambda n: (len(needs[n] - held), len(held - needs[n]), n))
        order.append(following)
        left.remove(following)
    return [variants[n] for n in order]


def local_models(variant: Variant, metrics: Sequence[str]) -> frozenset[str]:
    """Return the names of the models whose weights a variant needs on this machine."""
    used = models_asked(variant.config, metrics).items()
    return frozenset(name for role, names in used for name in alternatives(names) if _is_local(role, name))


def _is_local(role: str, name: str) -> bool:
    kind = kind_of_role(role)
    try:
        provider = providers_of(kind).get(split_name(name, kind)[0])
    except ModelError:  # it is told where the plan is checked
        return False
    return provider is not None and not provider.is_server


def are_small(models: Set[str]) -> bool:
    """Tell whether these local models have so few weights together that any machine holds all of them at a time.

    Of one whose weights are not on this machine nobody knows.
    """
    sizes_mb = [_weights_mb(name) for name in models]
    return all(sizes_mb) and sum(sizes_mb) <= _SMALL_MB


def _weights_mb(model: str) -> float:
    """Return the MiB of a model's weights; 0 where they are not here."""
    name = model.partition(":")[2].partition("?")[0]
    try:
        return bytes_on_disk(Path(find(name).location)) / 2**20 if name else 0.0
    except ModelError:
        return 0.0
