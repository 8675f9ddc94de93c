"""Variants that are made while a design chooses: from what is chosen to a variant with a name of its own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from rag_lab._kit.digest import digest_word
from rag_lab._kit.module_files import modules_from
from rag_lab.errors import ConfigError
from rag_lab.experiment.design import Expansion, Variant
from rag_lab.experiment.designs.factors import Changes, first_values, settled
from rag_lab.experiment.designs.variant_id import variant_id, variant_label
from rag_lab.experiment.plan import Plan, readers_of
from rag_lab.experiment.race import round_plan
from rag_lab.experiment.same_pipeline import run_once
from rag_lab.experiment.stage_identities import Readers


@dataclass(frozen=True)
class SearchVariants:
    """Makes the variants of a plan's factors; a combination has the same name whenever it is made."""

    plan: Plan

    @property
    def first(self) -> Changes:
        """The first value of each factor."""
        return first_values(self.plan.experiment.factors)

    def settled(self, choice: Changes) -> Changes:
        """Return a combination as the rules between factors let it be."""
        given = self.plan.experiment
        return settled(given.base.flat(), choice, given.factors, given.only_if)

    def variant(self, choice: Changes) -> Variant:
        """Return the variant of a combination, told apart from the experiment's baseline.

        Raises:
            ConfigError: if its values cannot stand together.
        """
        with modules_from(self.plan.folder):
            config = self.plan.experiment.base.override(self.settled(choice))
        known = self.plan.expansion.baseline.config.flat()
        changes = {key: value for key, value in config.flat().items() if value != known[key]}
        if not changes:
            return self.plan.expansion.baseline
        return Variant(self._name(changes), variant_label(changes), changes, config)

    def _name(self, changes: Changes) -> str:
        """Return the id of a variant, which tells it from all others that can be made, as folders tell names apart."""
        factors = self.plan.experiment.factors
        name = variant_id(changes, among=factors)
        is_clear = all(
            len({variant_id({key: value}, among=factors).casefold() for value in factors[key]}) == len(factors[key])
            for key in changes
            if key in factors
        )
        return name if is_clear else f"{name}-{digest_word(changes)}"

    @property
    def readers(self) -> Readers:
        """What is read of the pipelines while they are chosen among."""
        part = round_plan(self.plan, 1, [])
        return readers_of(part.experiment, part.dataset, part.questions, part.answered)

    def expansion(self, choices: Sequence[Changes]) -> Expansion:
        """Return the variants of combinations, each pipeline once, the first as that with which others are compared.

        One whose values cannot stand together is left out with a notice.
        """
        made: dict[str, Variant] = {}
        notices = []
        for choice in choices:
            try:
                one = self.variant(choice)
            except ConfigError as error:
                notices.append(f"Left out: {variant_label(choice)}: {error}")
                continue
            made.setdefault(one.variant_id, one)
        against = next(iter(made.values())).config.flat()
        variants = tuple(
            Variant(
                one.variant_id,
                one.label,
                {key: value for key, value in one.config.flat().items() if value != against[key]},
                one.config,
            )
            for one in made.values()
        )
        return run_once(Expansion(variants, tuple(notices)), self.readers)

    def named(self, choices: Sequence[Changes]) -> dict[str, Changes]:
        """Return combinations by the names of their variants, the first of each, without those that cannot stand."""
        found: dict[str, Changes] = {}
        for choice in choices:
            with suppress(ConfigError):
                found.setdefault(self.variant(choice).variant_id, choice)
        return found
