"""What each module adds, from the design that the variants of a run make, as a table and in plain words."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from rag_lab._kit.wording import counted, listing, with_interval
from rag_lab.comparison.tables.comparable import withheld
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.errors import ConfigError
from rag_lab.statistics.effects.contrasts import EFFECT_COLUMNS, Effect, design, design_effects, effects_table
from rag_lab.statistics.effects.factors import GRIDS, LONGEST, Factors, Word, aliases_of, factor_values, words
from rag_lab.statistics.verdict import NO_DIFFERENCE

_NAMED = 3  # interactions that one effect is confounded with, and pairs of interactions
_ROMAN = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")


def fraction_sentence(names: Sequence[str], runs: Sequence[Sequence[Hashable]]) -> str:
    """Return what runs of two levels a factor are of the grid of all, and what is confounded in them.

    Args:
        names: of the factors, in the order of the levels of each run.
        runs: the levels of each run; a run counts as often as it is planned.
    """
    found, share = words(runs), 2 ** len(names) // len(runs)
    many = f"{len(runs)} of the {2 ** len(names):,} combinations"
    if share == 1:
        return f"The fraction is the whole grid: {many}."
    if not found:
        return f"The fraction, {many}, confounds no effect with an interaction of fewer than {LONGEST} factors."
    resolution = min(map(len, found))
    return f"The fraction, {many}, has resolution {_ROMAN[resolution]}: {_aliases_text(names, found, resolution)}"


def _aliases_text(names: Sequence[str], found: Sequence[Word], resolution: int) -> str:
    alike = [aliases_of(frozenset({place}), found) for place in range(len(names))]
    told = [f"{name} with {_some(names, others)}" for name, others in zip(names, alike, strict=True) if others]
    free = [name for name, others in zip(names, alike, strict=True) if not others]
    mains = f"the main effect of {'; of '.join(told)}, so that each is the sum of all that it is confounded with"
    if free:
        mains += f"; {listing(free)} with no interaction of fewer than {LONGEST} factors"
    if resolution == 3:
        return f"it confounds {mains}."
    if resolution == 4:
        return f"it confounds {mains}; interactions of two are confounded with each other, and are not told."
    return f"it confounds {mains}; interactions of two are confounded with those of {resolution - 2} or more."


def _some(names: Sequence[str], others: Sequence[Word]) -> str:
    written = [" × ".join(names[place] for place in sorted(one)) for one in others]
    more = [f"{len(written) - _NAMED} more"] if len(written) > _NAMED else []
    return listing([*written[:_NAMED], *more])


Key = tuple[str, str, str]  # metric, factor and level; or metric, variant and what it is compared with


@dataclass(frozen=True)
class EffectsFound:
    """Effects of a run.

    table: as `effects_table` returns it, for the quality metrics.
    kind: `grid`, `nested`, `fraction`, `one_factor`, `other`, or `none` where no effect can be told.
    note: what the design can and cannot show, in a sentence.
    confounded: of a fraction, what its effects are confounded with; else "".
    by_margin: what a margin allows one to say, by metric, factor and level.
    """

    table: pd.DataFrame = field(repr=False)
    kind: str
    note: str
    confounded: str = ""
    by_margin: Mapping[Key, str] = field(default_factory=dict)

    @property
    def is_grid(self) -> bool:
        """Whether there are main effects."""
        return self.kind in GRIDS

    def sentences(self, metric: str) -> list[str]:
        """Return what the effects on `metric` say, in plain words."""
        if metric not in self._sentences:
            self._sentences[metric] = sentences(self.table, metric, self.by_margin)
        return list(self._sentences[metric])

    @cached_property
    def _sentences(self) -> dict[str, list[str]]:
        """The sentences of metrics that were asked for: a report asks for each in many places."""
        return {}

    def reliable_sentences(self, metric: str) -> list[str]:
        """Return the sentences of the reliable main effects and interactions; toggles are differences already told."""
        told = self.table[(self.table["metric"] == metric) & (self.table["kind"] != "conditional")]
        is_found = told["verdict"].isin(["better", "worse"]) & (told["kind"] != "toggle")
        return [sentence for sentence, found in zip(self.sentences(metric), is_found, strict=True) if found]

    def interactions(self, metric: str) -> list[tuple[str, str]]:
        """Return the pairs (factor, other) for which `metric` has conditional effects, each pair of factors once."""
        rows = self.table[(self.table["metric"] == metric) & (self.table["kind"] == "interaction")]
        return list(dict.fromkeys(zip(rows["factor"], rows["other"], strict=True)))


@dataclass(frozen=True)
class PlannedEffects:
    """The effects that the design of a run can show; the others as in `EffectsFound`."""

    effects: tuple[Effect, ...]
    kind: str
    note: str
    confounded: str = ""

    @property
    def is_grid(self) -> bool:
        """Whether there are main effects."""
        return self.kind in GRIDS


def planned_effects(tables: RunTables) -> PlannedEffects:
    """Return the effects that the run's design can show; it never raises, and says why where there are none."""
    quality, run = tables.quality_scores, tables.run
    scored = set(quality.loc[quality["status"] == "scored", "variant_id"].unique())
    if run.baseline not in scored:
        return PlannedEffects((), "none", "The baseline has no scores, so no effect can be told.")
    if len(scored) < 2:
        return PlannedEffects((), "none", "Only one variant has scores, so there is no effect to tell.")
    values = factor_values({plan.variant_id: plan.changes for plan in run.variants}, tables.baseline_values)
    try:
        same = [(one.changes, one.run_as) for one in run.same]
        factors = design(quality, values, run.baseline, planned=run.design, same=same)
    except ConfigError as error:
        return PlannedEffects((), "none", str(error))
    effects = tuple(one for one in design_effects(quality, factors, tables.main_metric) if not _is_uneven(tables, one))
    absent = [plan.variant_id for plan in tables.variants if plan.variant_id not in scored]
    left_out = f" Without scores and left out: {', '.join(map(tables.name, absent))}." if absent else ""
    return PlannedEffects(effects, factors.kind, _note(factors, not effects) + left_out, _confounded(factors))


def effects_found(tables: RunTables, by_margin: Mapping[Key, str]) -> EffectsFound:
    """Return the effects of the run with their answers.

    Args:
        tables: of the run.
        by_margin: what a margin allows one to say of a main effect, by metric, factor and level, or of a variant, by
            metric, variant and what it is compared with.
    """
    planned = planned_effects(tables)
    if not planned.effects:
        return EffectsFound(pd.DataFrame(columns=list(EFFECT_COLUMNS)), planned.kind, planned.note)
    table = effects_table(planned.effects, tables.answers)
    said = {}
    for one in planned.effects:
        keys = [(one.contrast.factor, one.contrast.level), tuple(one.contrast.weights)]
        told = next((by_margin[(one.metric, *key)] for key in keys if (one.metric, *key) in by_margin), None)
        if told and one.contrast.kind in ("main", "toggle"):
            said[(one.metric, one.contrast.factor, one.contrast.level)] = told
    return EffectsFound(table, planned.kind, planned.note, planned.confounded, said)


def _is_uneven(tables: RunTables, effect: Effect) -> bool:
    weighed = [variant for variant, weight in effect.contrast.weights.items() if weight]
    return bool(withheld(tables, effect.metric, weighed))


def _confounded(factors: Factors) -> str:
    return fraction_sentence(list(factors.levels), list(factors.runs)) if factors.kind == "fraction" else ""


def _note(factors: Factors, without_effects: bool) -> str:
    if factors.kind == "fraction":
        return (
            f"{_confounded(factors)} Each effect is averaged over the runs that "
            "there are. All effects are on the questions that every variant has scored. The effects that are told "
            "are the primary family of tests in the metric that decides."
        )
    if factors.kind in GRIDS:
        full = "a full grid" if factors.kind == "grid" else f"a grid in which {factors.reason}"
        return (
            f"The variants make {full}, so each effect is averaged over the other modules, and how it changes "
            "beside another module is measured too. All effects are on the questions that every variant has scored. "
            "Main effects and interactions in the metric that decides are the primary family of tests."
        )
    if factors.kind == "one_factor":
        return (
            "One module was changed at a time, so each effect is that of its change alone; whether modules add up or "
            "get in each other's way was not measured (`design: grid` does)."
        )
    told = "what each one adds cannot be told" if without_effects else "only single changes from the baseline are told"
    return f"{factors.reason[:1].upper()}{factors.reason[1:]}, so {told}."


def sentences(
    effects: pd.DataFrame, metric: str | None = None, by_margin: Mapping[Key, str] | None = None
) -> list[str]:
    """Return what `effects` says: a sentence a main effect or toggle, and one a pair of levels of an interaction.

    An interaction is told both ways round: what each of the two does without and with the other. That an effect is
    reliable at one level and not at another does not show that it differs between them (Gelman and Stern 2006); so the
    sentence ends with whether the difference itself is reliable.

    Args:
        effects: as `effects_table` returns them.
        metric: of which, where not all are wanted.
        by_margin: as that of `EffectsFound`.
    """
    rows = effects if metric is None else effects[effects["metric"] == metric]
    said = []
    for row in rows.to_dict("records"):
        if row["kind"] in ("main", "toggle"):
            said.append(_main(row, rows, (by_margin or {}).get((row["metric"], row["factor"], row["level"]), "")))
        elif row["kind"] == "interaction":
            said.append(_interaction(row, rows))
    return said


def _main(row: dict[Any, Any], rows: pd.DataFrame, by_margin: str) -> str:
    others = [name for name in dict.fromkeys(rows.loc[rows["kind"] == "main", "factor"]) if name != row["factor"]]
    over = f", averaged over {listing(others)}" if row["kind"] == "main" and others else ""
    against = f"against {row['first']}{over}"
    size = counted(row["n"], "question")
    does = f"{by_margin} ({_seen(row)})" if by_margin and row["verdict"] not in ("better", "worse") else _does(row)
    return f"{row['factor']}={row['level']} {does} in {row['metric']} {against} ({size})."


def _interaction(row: dict[Any, Any], rows: pd.DataFrame) -> str:
    if row["verdict"] in ("better", "worse"):
        end = f"the difference, {_seen(row)}, is reliable"
    elif row["effect"] is None:
        end = f"about the difference: {row['verdict']}"
    elif _is_same(row):
        end = "these two differ on no question"
    else:
        why = f"; {row['doubt']}" if row["doubt"] else ""
        end = f"whether these two differ the data cannot tell ({_seen(row)}{why})"
    swapped = {
        **{"factor": row["other"], "level": row["other_level"], "first": row["other_first"]},
        **{"other": row["factor"], "other_level": row["level"], "other_first": row["first"]},
    }
    one, other = (_one_way(way, rows) for way in (row, row | swapped))
    return f"In {row['metric']}, {one}; {other}; {end} ({counted(row['n'], 'question')})."


def _one_way(row: dict[Any, Any], rows: pd.DataFrame) -> str:
    alone, beside = (_conditional(row, rows, level) for level in (row["other_first"], row["other_level"]))
    return (
        f"{row['factor']}={row['level']} {_does(alone)} while {row['other']}={row['other_first']}, and {_does(beside)} "
        f"once {row['other']}={row['other_level']}"
    )


def _conditional(row: dict[Any, Any], rows: pd.DataFrame, held: Any) -> dict[Any, Any]:
    same = (rows["kind"] == "conditional") & (rows["metric"] == row["metric"]) & (rows["other_level"] == held)
    for name in ("factor", "level", "other"):
        same &= rows[name] == row[name]
    return {str(key): value for key, value in rows[same].iloc[0].items()}


def _does(row: dict[Any, Any]) -> str:
    if row["effect"] is None:
        return f"does nothing that could be measured ({row['verdict']})"
    if row["verdict"] == "better":
        return f"adds {_seen(row)}" if row["effect"] > 0 else f"takes off {_seen(row)}, which is better,"
    if row["verdict"] == "worse":
        return f"costs {_seen(row)}" if row["effect"] < 0 else f"adds {_seen(row)}, which is worse,"
    if _is_same(row):
        return "changes no question"
    if row["doubt"]:
        return f"shows {_seen(row)}, which is no finding ({row['doubt']}),"
    return f"does nothing that the data can tell from chance ({_seen(row)})"


def _is_same(row: dict[Any, Any]) -> bool:
    return str(row["verdict"]).startswith(NO_DIFFERENCE)


def _seen(row: dict[Any, Any]) -> str:
    return with_interval(row["effect"], row["low"], row["high"])
