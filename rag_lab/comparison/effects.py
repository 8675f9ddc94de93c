"""What each module adds, from the design that the variants of a run make."""

from __future__ import annotations

from dataclasses import dataclass, field

import pandas as pd

from rag_lab.comparison.run_tables import RunTables
from rag_lab.errors import ConfigError
from rag_lab.statistics.effect_sentences import sentences
from rag_lab.statistics.effects.factors import Factors, factor_values
from rag_lab.statistics.effects.module_effects import EFFECT_COLUMNS, design, effects


@dataclass(frozen=True)
class EffectsFound:
    """Effects of a run.

    table: as `statistics.effects.effects` returns it, for the quality metrics.
    kind: `grid`, `one_factor`, `other`, or `none` where no effect can be told.
    note: what the design can and cannot show, in a sentence.
    """

    table: pd.DataFrame = field(repr=False)
    kind: str
    note: str

    def sentences(self, metric: str) -> list[str]:
        """Return what the effects on `metric` say, in plain words."""
        return sentences(self.table, metric)

    def reliable_sentences(self, metric: str) -> list[str]:
        """Return the sentences of the reliable main effects and interactions; toggles are differences already told."""
        told = self.table[(self.table["metric"] == metric) & (self.table["kind"] != "conditional")]
        is_found = told["verdict"].isin(["better", "worse"]) & (told["kind"] != "toggle")
        return [sentence for sentence, found in zip(self.sentences(metric), is_found, strict=True) if found]

    def interactions(self, metric: str) -> list[tuple[str, str]]:
        """Return the pairs (factor, other) for which `metric` has conditional effects, each pair of factors once."""
        rows = self.table[(self.table["metric"] == metric) & (self.table["kind"] == "interaction")]
        return list(dict.fromkeys(zip(rows["factor"], rows["other"], strict=True)))


def effects_found(tables: RunTables) -> EffectsFound:
    """Return the effects that the run's design can show; it never raises, and says why where there are none."""
    quality, run = tables.quality_scores, tables.run
    none = pd.DataFrame(columns=list(EFFECT_COLUMNS))
    scored = set(quality.loc[quality["status"] == "scored", "variant_id"])
    if run.baseline not in scored:
        return EffectsFound(none, "none", "The baseline has no scores, so no effect can be told.")
    if len(scored) < 2:
        return EffectsFound(none, "none", "Only one variant has scores, so there is no effect to tell.")
    values = factor_values({plan.variant_id: plan.changes for plan in run.variants}, tables.baseline_values)
    try:
        factors = design(quality, values, run.baseline)
        table = effects(
            quality,
            values,
            run.baseline,
            correction=tables.correction,
            clusters=tables.clusters,
            noise=tables.noise,
            scales=tables.scales,
            compared=tables.differences,
        )
    except ConfigError as error:
        return EffectsFound(none, "none", str(error))
    absent = [plan.variant_id for plan in tables.variants if plan.variant_id not in scored]
    left_out = f" Without scores and left out: {', '.join(map(tables.name, absent))}." if absent else ""
    return EffectsFound(table, factors.kind, _note(factors, table.empty) + left_out)


def _note(factors: Factors, without_effects: bool) -> str:
    if factors.kind == "grid":
        return (
            "The variants make a full grid, so each effect is averaged over the other modules, and how it changes "
            "beside another module is measured too. All effects are on the questions that every variant has scored. "
            "Main effects and interactions are one family of tests, the effects at each level another; an effect that "
            "is a row of the table of differences, on the same questions, has its answer."
        )
    if factors.kind == "one_factor":
        return (
            "One module was changed at a time, so each effect is that of its change alone; whether modules add up or "
            "get in each other's way was not measured (`design: grid` does). Its answer is that of the table of "
            "differences."
        )
    told = "what each one adds cannot be told" if without_effects else "only single changes from the baseline are told"
    return f"{factors.reason[:1].upper()}{factors.reason[1:]}, so {told}."
