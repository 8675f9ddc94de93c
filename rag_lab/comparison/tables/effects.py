"""What each module adds, from the design that the variants of a run make, as a table and in plain words."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from rag_lab._kit.config_file import read_shipped
from rag_lab._kit.wording import counted, listing, some_of, with_interval
from rag_lab.comparison.tables.bounds import bound_arms
from rag_lab.comparison.tables.costs import Price, average
from rag_lab.comparison.tables.reliability import shared_fields, withheld
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.statistics import effects as designs
from rag_lab.statistics import non_inferiority
from rag_lab.statistics.verdict import NO_DIFFERENCE

_NOTES: dict[str, str] = read_shipped(Path(__file__).with_suffix(".yaml"))
_NAMED = 3  # interactions that one effect is confounded with, and pairs of interactions
_ROMAN = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")
Key = tuple[str, str, str]  # metric, factor and level; or metric, variant and what it is compared with


def fraction_sentence(names: Sequence[str], runs: Sequence[Sequence[Hashable]]) -> str:
    """Return what runs of two levels a factor are of the grid of all, and what is confounded in them.

    `names` are those of the factors, in the order of the levels of each run; a run counts as often as it is planned.
    """
    found, share = designs.words(runs), 2 ** len(names) // len(runs)
    many = f"{len(runs)} of the {2 ** len(names):,} combinations"
    if share == 1:
        return f"The fraction is the whole grid: {many}."
    if not found:
        return f"The fraction, {many}, confounds no effect with an interaction of fewer than {designs.LONGEST} factors."
    confounded, free = [], []
    for number, name in enumerate(names):
        # The effects of fewest factors that words make of this one, the shortest first.
        aliases = sorted((sorted(word ^ {number}) for word in found if word != {number}), key=lambda a: (len(a), a))
        others = [" × ".join(names[place] for place in one) for one in aliases]
        if others:
            confounded.append(f"{name} with {some_of(others, _NAMED)}")
        else:
            free.append(name)
    mains = f"the main effect of {'; of '.join(confounded)}, so that each is the sum of all that it is confounded with"
    if free:
        mains += f"; {listing(free)} with no interaction of fewer than {designs.LONGEST} factors"
    resolution = min(map(len, found))
    interactions = f"; interactions of two are confounded with those of {resolution - 2} or more"
    if resolution == 3:
        interactions = ""
    elif resolution == 4:
        interactions = "; interactions of two are confounded with each other, and are not told"
    return f"The fraction, {many}, has resolution {_ROMAN[resolution]}: it confounds {mains}{interactions}."


@dataclass(frozen=True)
class EffectsFound:
    """Effects of a run.

    kind: `grid`, `nested`, `fraction`, `one_factor`, `other`, or `none` where no effect can be told.
    note: what the design can and cannot show, in a sentence.
    confounded: of a fraction, what its effects are confounded with; else "".
    planned: the effects that the design can show.
    table: as `effects_table` returns it, for the quality metrics; empty until they are tested.
    by_margin: what a margin allows one to say, by metric, factor and level.
    """

    kind: str
    note: str
    confounded: str = ""
    planned: tuple[designs.Effect, ...] = field(default=(), repr=False)
    table: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(designs.EFFECT_COLUMNS)), repr=False)
    by_margin: Mapping[Key, str] = field(default_factory=dict)

    @property
    def is_grid(self) -> bool:
        """Whether there are main effects."""
        return self.kind in designs.GRIDS

    def sentences(self, metric: str) -> list[str]:
        """Return what the effects on `metric` say, in plain words."""
        return list(self._sentences.get(metric, ()))

    @cached_property
    def _sentences(self) -> dict[str, list[str]]:
        """The sentences of each metric: a report asks for them in many places."""
        metrics = self.table["metric"].unique()
        return {metric: sentences(self.table, metric, self.by_margin) for metric in metrics}

    def interactions(self, metric: str) -> list[tuple[str, str]]:
        """Return the pairs (factor, other) for which `metric` has conditional effects, each pair of factors once."""
        rows = self.table[(self.table["metric"] == metric) & (self.table["kind"] == "interaction")]
        return list(dict.fromkeys(zip(rows["factor"], rows["other"], strict=True)))


def planned_effects(tables: RunTables) -> EffectsFound:
    """Return the effects that the run's design can show; it never raises, and says why where there are none."""
    quality, run = tables.quality_scores, tables.run
    scored = set(quality.loc[quality["status"] == "scored", "variant_id"].unique())
    if run.baseline not in scored:
        return EffectsFound("none", "The baseline has no scores, so no effect can be told.")
    if len(scored) < 2:
        return EffectsFound("none", "Only one variant has scores, so there is no effect to tell.")
    values = designs.factor_values({plan.variant_id: plan.changes for plan in run.variants}, tables.baseline_values)
    try:
        same = [(one.changes, one.run_as) for one in run.same]
        known = {variant: one for variant, one in values.items() if variant in scored}
        factors = designs.read_factors(known, run.baseline, planned=run.design, same=same)
    except ValueError as error:
        return EffectsFound("none", f"No effects can be computed: {error}.")
    effects = []
    for one in designs.design_effects(quality, factors, tables.main_metric):
        weighed = [variant for variant, weight in one.contrast.weights.items() if weight]
        if not withheld(tables, one.metric, weighed):
            effects.append(one)
    absent = [plan.variant_id for plan in tables.variants if plan.variant_id not in scored]
    left_out = f" Without scores and left out: {', '.join(map(tables.name, absent))}." if absent else ""
    fraction = fraction_sentence(list(factors.levels), list(factors.runs)) if factors.kind == "fraction" else ""
    start = f"{factors.reason[:1].upper()}{factors.reason[1:]}, so "
    if factors.kind in designs.GRIDS:
        start = "a full grid" if factors.kind == "grid" else f"a grid in which {factors.reason}"
    kind = {"nested": "grid", "other": "other" if effects else "nothing"}.get(factors.kind, factors.kind)
    note = _NOTES[kind].format(fraction=fraction, start=start) + left_out
    return EffectsFound(factors.kind, note, fraction if effects else "", tuple(effects))


def sentences(
    effects: pd.DataFrame, metric: str | None = None, by_margin: Mapping[Key, str] | None = None
) -> list[str]:
    """Return what `effects` says: a sentence a main effect or toggle, and one a pair of levels of an interaction.

    `effects` is as `effects_table` returns it, `by_margin` as in `EffectsFound`.
    """
    rows = effects if metric is None else effects[effects["metric"] == metric]
    said = []
    for row in rows.to_dict("records"):
        if row["kind"] in ("main", "toggle"):
            mains = dict.fromkeys(rows.loc[rows["kind"] == "main", "factor"])
            others = [name for name in mains if name != row["factor"]]
            over = f", averaged over {listing(others)}" if row["kind"] == "main" and others else ""
            does, bound = _does(row), (by_margin or {}).get((row["metric"], row["factor"], row["level"]))
            if bound and row["verdict"] not in ("better", "worse"):
                does = f"{bound} ({with_interval(row['effect'], row['low'], row['high'])})"
            said.append(
                f"{row['factor']}={row['level']} {does} in {row['metric']} against {row['first']}{over} "
                f"({counted(row['n'], 'question')})."
            )
        elif row["kind"] == "interaction":
            said.append(_interaction(row, rows))
    return said


def _interaction(row: dict[Any, Any], rows: pd.DataFrame) -> str:
    """Tell an interaction both ways round: what each of the two does without and with the other.

    That an effect is reliable at one level and not at another does not show that it differs between them (Gelman and
    Stern 2006); so the sentence ends with whether the difference itself is reliable.
    """
    seen = with_interval(row["effect"], row["low"], row["high"])
    if row["verdict"] in ("better", "worse"):
        end = f"the difference, {seen}, is reliable"
    elif row["effect"] is None:
        end = f"about the difference: {row['verdict']}"
    elif str(row["verdict"]).startswith(NO_DIFFERENCE):
        end = "these two differ on no question"
    else:
        why = f"; {row['doubt']}" if row["doubt"] else ""
        end = f"whether these two differ the data cannot tell ({seen}{why})"
    ways = []
    turned = {
        **{"factor": row["other"], "level": row["other_level"], "first": row["other_first"]},
        **{"other": row["factor"], "other_level": row["level"], "other_first": row["first"]},
    }
    for way in (row, row | turned):
        does = []
        for level in (way["other_first"], way["other_level"]):
            same = (rows["kind"] == "conditional") & (rows["metric"] == way["metric"]) & (rows["other_level"] == level)
            for name in ("factor", "level", "other"):
                same &= rows[name] == way[name]
            does.append(_does(rows[same].to_dict("records")[0]))
        ways.append(
            f"{way['factor']}={way['level']} {does[0]} while {way['other']}={way['other_first']}, and {does[1]} once "
            f"{way['other']}={way['other_level']}"
        )
    return f"In {row['metric']}, {ways[0]}; {ways[1]}; {end} ({counted(row['n'], 'question')})."


def _does(row: dict[Any, Any]) -> str:
    seen = with_interval(row["effect"], row["low"], row["high"])
    if row["effect"] is None:
        return f"does nothing that could be measured ({row['verdict']})"
    if row["verdict"] == "better":
        return f"adds {seen}" if row["effect"] > 0 else f"takes off {seen}, which is better,"
    if row["verdict"] == "worse":
        return f"costs {seen}" if row["effect"] < 0 else f"adds {seen}, which is worse,"
    if str(row["verdict"]).startswith(NO_DIFFERENCE):
        return "changes no question"
    if row["doubt"]:
        return f"shows {seen}, which is no finding ({row['doubt']}),"
    return f"does nothing that the data can tell from chance ({seen})"


MOST_PLANNED = 3


@dataclass(frozen=True, slots=True)
class NotWorse:
    """Whether the side to keep is not worse by more than the margin; `reason` says why that could not be tested.

    is_addition: the variant costs more, so that what it is compared with is the side to keep.
    weights: of the variants, positive for the side to keep.
    n, n_failed: questions that it stands on, and of these those on which one of the two failed.
    p_value, p_corrected: one-sided; corrected over the pairs, or main effects, of the metric.
    price: how much more the side to keep takes.
    """

    is_addition: bool
    weights: tuple[tuple[str, float], ...]
    margin: float
    n: int
    n_failed: int
    p_value: float | None
    p_corrected: float | None
    is_found: bool
    reason: str
    price: Price


def not_worse_found(tables: RunTables, planned: EffectsFound, prices: Mapping[str, Price]) -> dict[Key, NotWorse]:
    """Return what the margins of a run allow one to say; empty where it has none."""
    found: dict[Key, NotWorse] = {}
    for metric, margin in tables.run.margins.items():
        if planned.is_grid:  # by factor and level, else by pair
            mains = [one.contrast for one in planned.planned if one.contrast.kind == "main" and one.metric == metric]
            contrasts = {(one.factor, one.level): one.weights for one in mains}
        else:
            scored = set(tables.scores.loc[tables.scores["metric"] == metric, "variant_id"])
            pairs = [pair for pair in tables.run.pairs if scored.issuperset(pair)]
            open_ones = [pair for pair in pairs if not _is_withheld(tables, *pair, metric)]
            contrasts = {pair: {pair[0]: 1.0, pair[1]: -1.0} for pair in open_ones}
        if metric not in tables.quality_metrics or not contrasts:
            continue
        surplus = {}  # how much more the one side takes, and the other
        for key, weights in contrasts.items():
            sides = ([one for one, weight in weights.items() if weight * sign > 0] for sign in (1, -1))
            ours, theirs = (average(prices, side) for side in sides)
            surplus[key] = ours.minus(theirs), theirs.minus(ours)
            if theirs.minus(ours).is_saving:  # an addition: the other side is the one to keep
                contrasts[key] = {one: -weight for one, weight in weights.items()}
        table = non_inferiority.not_worse(
            tables.quality_scores, contrasts, {metric: margin}, clusters=tables.clusters, scales=tables.scales
        )
        for row in table.to_dict("records"):
            more, less = surplus[row["contrast"]]
            found[(metric, *row["contrast"])] = NotWorse(
                is_addition=less.is_saving,
                weights=tuple(contrasts[row["contrast"]].items()),
                margin=float(row["margin"]),
                n=int(row["n"]),
                n_failed=int(row["n_failed"]),
                p_value=row["p_value"],
                p_corrected=row["p_corrected"],
                is_found=bool(row["is_not_worse"]),
                reason=str(row["reason"]),
                price=less if less.is_saving else more,
            )
    return found


def questions_for_margin(
    tables: RunTables, found: Mapping[Key, NotWorse], findings: Collection[Key]
) -> dict[Key, int | None]:
    """Return how many questions, or clusters, would show what the main metric's margin does not show yet.

    Told of the answers that are closest, at most MOST_PLANNED, as each takes a simulation, and not of `findings`:
    where a difference is known, it is idle to ask what would be shown if there were none.
    """
    ours = {key: one for key, one in found.items() if key[0] == tables.main_metric and one.p_value is not None}
    missing = [key for key, one in ours.items() if not one.is_found and key not in findings]
    open_ones = sorted(missing, key=lambda key: ours[key].p_value or 0.0)
    weights = {key: dict(ours[key].weights) for key in open_ones[:MOST_PLANNED]}
    if not weights or tables.main_metric is None:
        return {}
    return non_inferiority.questions_needed(
        tables.quality_scores,
        weights,
        tables.main_metric,
        tables.run.margins[tables.main_metric],
        len(ours),
        clusters=tables.clusters,
        scales=tables.scales,
    )


def best_found(tables: RunTables) -> pd.DataFrame:
    """Return for each variant whether it is not worse than the best by more than the margin of the main metric.

    Candidates and rivals are the variants that the run is about: where it names pairs, those of the pairs. Variants
    that the metric is blind to, or sees to another depth than the first of them, are neither, and no bound is one.
    """
    metric = tables.main_metric
    if metric is None or metric not in tables.run.margins:
        return pd.DataFrame(columns=list(non_inferiority.BEST_COLUMNS))
    asked = {variant for pair in tables.run.pairs for variant in pair} - set(bound_arms(tables))
    ids = [plan.variant_id for plan in tables.variants if plan.variant_id in asked]
    scored = [variant for variant in ids if (tables.cell(variant, metric) or {}).get("scored")]
    able = [one for one in scored if one == scored[0] or not _is_withheld(tables, one, scored[0], metric)]
    margin = {metric: tables.run.margins[metric]}
    return non_inferiority.not_worse_than_best(
        tables.quality_scores, able, margin, clusters=tables.clusters, scales=tables.scales
    )


def _is_withheld(tables: RunTables, variant: str, against: str, metric: str) -> bool:
    """Tell whether two variants are not compared, or the metric reads nothing that differs between them."""
    if withheld(tables, metric, (variant, against)):
        return True
    row = tables.pair(variant, against, metric)
    is_tied = row is not None and 0 < int(row["n"]) == int(row["ties"])
    return is_tied and bool(shared_fields(tables, variant, against, metric))
