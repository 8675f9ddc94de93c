"""The order in which the variants of a sweep run: those that need the same local models one after another.

So a machine that cannot hold all models at a time loads each few times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from rag_lab.errors import ModelError
from rag_lab.experiment.design import Variant
from rag_lab.experiment.model_checks import kind_of_role, models_used
from rag_lab.models.failover.names import alternatives
from rag_lab.models.providers import providers_of
from rag_lab.models.spec import split_name


def in_model_order(
    variants: Sequence[Variant], metrics: Sequence[str], models: Callable[[Variant], Set[str]] | None = None
) -> list[Variant]:
    """Return the variants, the first (the baseline) first, then always one that needs the fewest models anew.

    Of several it is the one that lets go of the fewest, and then the one that stands first.

    Args:
        variants: in the order of the plan.
        metrics: that score them, by name.
        models: which local models a variant needs; by its configuration where None.
    """
    needs = [(models or (lambda one: local_models(one, metrics)))(variant) for variant in variants]
    order, left = [0][: len(variants)], list(range(1, len(variants)))
    while left:
        held = needs[order[-1]]
        following = min(left, key=lambda n: (len(needs[n] - held), len(held - needs[n]), n))
        order.append(following)
        left.remove(following)
    return [variants[n] for n in order]


def local_models(variant: Variant, metrics: Sequence[str]) -> frozenset[str]:
    """Return the names of the models whose weights a variant needs on this machine."""
    used = models_used(variant.config, metrics).items()
    return frozenset(name for role, names in used for name in alternatives(names) if _is_local(role, name))


def _is_local(role: str, name: str) -> bool:
    kind = kind_of_role(role)
    try:
        provider = providers_of(kind).get(split_name(name, kind)[0])
    except ModelError:  # it is told where the plan is checked
        return False
    return provider is not None and not provider.is_server
