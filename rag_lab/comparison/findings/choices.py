"""The variants of a run with what decides between them, and what is said of that, a sentence each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rag_lab._kit.wording import DASH, counted, listing, number, plain, signed, with_interval
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.findings.statements import ModuleRow, module_rows
from rag_lab.comparison.findings.verdict import against_name
from rag_lab.comparison.tables.bounds import BOUNDS, bound_arms
from rag_lab.comparison.tables.comparable import unchanged_fields
from rag_lab.comparison.tables.prices import MANY_TIMES, Price, latency_text, surplus
from rag_lab.runs.margins import post_hoc_sentence
from rag_lab.statistics.effects.factors import factor_values

Row = Mapping[str, Any]  # of a table of differences


@dataclass(frozen=True)
class Choices:
    """What there is to choose from in a run that has a main metric."""

    comparison: Comparison
    metric: str

    @property
    def reference(self) -> str | None:
        """What variants are set against: the baseline, or what all named pairs share; None where they share nothing."""
        run = self.comparison.run
        baseline = run.baseline
        if self.comparison.effects.is_grid or any(baseline in pair for pair in run.pairs) or not run.pairs:
            return baseline
        shared = {against for _, against in run.pairs}
        return shared.pop() if len(shared) == 1 else None

    @cached_property
    def rows(self) -> dict[str, Row]:
        """The difference of each variant from the reference that has an interval; bounds are no choice."""
        bounds = bound_arms(self.comparison)
        ids = [plan.variant_id for plan in self.comparison.variants if plan.variant_id not in bounds]
        found = {variant: self.comparison.pair(variant, self.reference or "", self.metric) for variant in ids}
        return {variant: row for variant, row in found.items() if row and number(row["low"]) is not None}

    @property
    def better(self) -> list[str]:
        """The variants that a primary finding makes better than the reference, the best first.

        In a grid the effects of modules are primary: there it is a variant with a level that is better over all
        settings of the others, and that is better by itself, too. What gains less than the margin is not among them.
        """
        found = [one for one in self._in_order if self.rows[one]["verdict"] == "better"]
        return [one for one in found if self._is_primary(one) and not self.may_go(one)]

    @property
    def promising(self) -> list[str]:
        """The variants that look better and are no finding, or one of a secondary comparison alone, the best first."""
        ahead = [one for one in self._in_order if self.sign * float(self.rows[one]["difference"]) > 0]
        looks = [one for one in ahead if self.rows[one]["doubt"] or self.rows[one]["verdict"] == "better"]
        return [one for one in looks if one not in self.better and not self.may_go(one)]

    def may_go(self, variant: str) -> bool:
        """Tell whether a variant is an addition that is shown to gain no more than the margin."""
        by = self.comparison.not_worse.get((self.metric, variant, self.reference or ""))
        return by is not None and by.is_found and by.is_addition

    @cached_property
    def better_levels(self) -> dict[str, ModuleRow]:
        """The levels of a grid that are better over all settings of the other modules, the best of each factor."""
        found: dict[str, ModuleRow] = {}
        for row in module_rows(self.comparison):
            is_bound = row.factor == "answer.context" and row.level in BOUNDS
            if row.factor and row.word == "better" and not row.is_lesser and not is_bound:
                found.setdefault(row.factor, row)
        return found

    @cached_property
    def levels(self) -> dict[str, dict[str, str]]:
        """The level of each factor under each variant."""
        changes = {plan.variant_id: plan.changes for plan in self.comparison.variants}
        return factor_values(changes, self.comparison.baseline_values)

    @property
    def _in_order(self) -> list[str]:
        """The variants that have a difference from the reference, the best mean first; failures count as the worst."""
        return [variant for variant in self.comparison.ranking["variant_id"] if variant in self.rows]

    def _is_primary(self, variant: str) -> bool:
        levels = self.better_levels if self.comparison.effects.is_grid else {}
        has_level = any(self.levels[variant].get(factor) == row.level for factor, row in levels.items())
        return has_level or self.rows[variant]["family"] == "primary"

    def is_dear(self, variant: str) -> bool:
        """Tell whether a variant takes many times what the reference takes, and no margin says whether that pays."""
        return self.metric not in self.comparison.run.margins and self.times(variant) > MANY_TIMES

    def times(self, variant: str) -> float:
        """Return how many times what the reference takes a variant takes."""
        ours, base = (self.comparison.prices.get(one or "", Price()) for one in (variant, self.reference))
        return ours.times(base)

    @property
    def near_best(self) -> list[str]:
        """The variants that are shown to be not worse than the best by more than the margin, the cheapest first."""
        table = self.comparison.not_worse_than_best
        return self.cheapest_first([str(one) for one in table.loc[table["is_not_worse"].astype(bool), "variant_id"]])

    @property
    def savings(self) -> list[str]:
        """The variants that are cheaper than the reference and that no interval puts behind it, the cheapest first."""
        return self.cheapest_first(
            [one for one, row in self.rows.items() if self.surplus(one).is_saving and not self.lags(row)]
        )

    @property
    def not_worse(self) -> list[str]:
        """The variants that save something and are not worse than the reference by the margin, the cheapest first."""
        answers = self.comparison.not_worse
        found = {one: answers.get((self.metric, one, self.reference or "")) for one in self.rows}
        kept = [one for one, by in found.items() if by and by.is_found and not by.is_addition and by.price.is_saving]
        return self.cheapest_first(kept)

    @property
    def best(self) -> str:
        """The variant with the best mean, failures counted as the worst."""
        order = self.comparison.ranking["variant_id"]
        return str(order[~order.isin([*bound_arms(self.comparison)])].iloc[0])

    def surplus(self, variant: str) -> Price:
        """Return how much more than the reference a variant takes."""
        return surplus(self.comparison.prices, variant, self.reference or "")

    def ends(self, row: Row) -> tuple[float, float]:
        """Return the worse and the better end of an interval."""
        low, high = float(row["low"]), float(row["high"])
        return (low, high) if self.sign > 0 else (high, low)

    def lags(self, row: Row) -> bool:
        """Tell whether an interval lies wholly on the worse side."""
        return self.sign * self.ends(row)[1] < 0

    @property
    def sign(self) -> int:
        """What a difference is multiplied with, so that more is better."""
        scale = self.comparison.scales.get(self.metric)
        return 1 if scale is None else scale.sign

    def cheapest_first(self, variants: Sequence[str]) -> list[str]:
        """Return variants by dollars, then by seconds that are noticed, and tokens.

        Of those that take the same, what is better comes first, then the reference, then the others by their means.
        """
        costs = self.comparison.prices
        order = [*self.better, self.reference, *self.comparison.ranking["variant_id"]]
        left = sorted(variants, key=lambda one: [value or 0.0 for value in costs.get(one, Price()).by_weight])
        found: list[str] = []
        while left:
            more = {one: surplus(costs, one, left[0]) for one in left}
            alike = [one for one in left if not more[one].is_costing]
            found += sorted(alike, key=lambda one: (not more[one].is_saving, order.index(one)))
            left = [one for one in left if one not in alike]
        return found


MOST_SAVINGS = 2  # cheaper variants that are told one by one


def reference_name(choices: Choices) -> str:
    """Name what variants are set against."""
    return against_name(choices.comparison, choices.reference or choices.comparison.run.baseline)


def gain_text(choices: Choices, variant: str) -> str:
    """Say what a variant that is reliably better gains: `it raises ndcg@5 by 0.1 [0.05 to 0.15] and costs 1.9 s …`."""
    row = choices.rows[variant]
    verb = "raises" if float(row["difference"]) > 0 else "lowers"
    ends = sorted(abs(float(row[end])) for end in ("low", "high"))
    size = f"{plain(abs(row['difference']))} [{plain(ends[0])} to {plain(ends[1])}]"
    metric = choices.comparison.directed(choices.metric)
    return f"it {verb} {metric} by {size} and {choices.surplus(variant).sentence}"


def margin_hint(choices: Choices) -> str:
    """Say how the report could tell what pays and what may be left out; "" where a margin was given or none can be."""
    comparison, metric = choices.comparison, choices.metric
    scale = comparison.scales.get(metric)
    if metric in comparison.run.margins or scale is None or scale.width is None:
        return ""
    return (
        "A margin, the largest loss that you would accept, says what pays and what may be left out: `margin: "
        f"{{{metric}: …}}` in the experiment file before it runs, or then `rag-lab report RUN --margin {metric}=…`."
    )


def margin_not_met(choices: Choices) -> list[str]:
    """Say that nothing was shown by the margin that was given, or nothing that would be recommended."""
    comparison, near = choices.comparison, choices.near_best
    margin = comparison.run.margins.get(choices.metric)
    if margin is None:
        return []
    near_best = f"shown to be not worse than the best by more than {margin:g}"
    if not near:
        return [f"No variant is {near_best}."]
    name = comparison.called(near[0])
    return [f"{name} is {near_best}, but costs more than {reference_name(choices)}, and no gain is shown that pays it."]


def cost_sentence(comparison: Comparison, variant: str) -> str:
    """Say what a question takes under a variant, search and answer apart."""
    without_time = replace(comparison.prices.get(variant, Price()), seconds=None).text
    told = [one for one in (latency_text(comparison, variant), without_time) if one and one != DASH]
    return f"It takes {listing(told) or DASH} a question."


def near_miss_sentence(choices: Choices) -> str:
    """Say of what looks better why it is no finding."""
    told = [
        f"{choices.comparison.called(variant)} {with_interval(row['difference'], row['low'], row['high'])}: "
        f"{row['doubt'] or 'found by a secondary comparison alone'}"
        for variant, row in choices.rows.items()
        if variant in choices.promising
    ]
    return f"Promising, but no finding: {'; '.join(told)}."


def open_gain_sentence(choices: Choices) -> str:
    """Name the largest gain that an interval leaves open: any larger one is ruled out."""
    ends = {variant: choices.ends(row)[1] for variant, row in choices.rows.items()}
    variant = max(ends, key=lambda one: choices.sign * ends[one])
    if choices.sign * ends[variant] <= 0:
        return "No 95% interval leaves a gain open."
    return (
        f"The largest gain that a 95% interval leaves open is {signed(ends[variant])}, of "
        f"{choices.comparison.called(variant)}, which {choices.surplus(variant).sentence}."
    )


def savings(choices: Choices) -> list[str]:
    """Say what the variants would save that are not behind the baseline, and what each may cost."""
    told = [_saving(choices, variant, choices.rows[variant]) for variant in choices.savings[:MOST_SAVINGS]]
    more = len(choices.savings) - len(told)
    return [*told, f"{counted(more, 'more variant')} would save something."] if more > 0 else told


def _saving(choices: Choices, variant: str, row: Row) -> str:
    comparison, metric = choices.comparison, choices.metric
    may = f"by its 95% interval it changes {metric} by {signed(choices.ends(row)[0])} at worst"
    if int(row["ties"]) == int(row["n"]):
        fields = unchanged_fields(comparison, variant, choices.reference or "", metric)
        blind = f"; but {metric} reads only the {fields}, which it does not change" if fields else ""
        may = f"it scores the same on every question{blind}"
    return f"{comparison.called(variant)} {choices.surplus(variant).sentence}: {may}."


def loss_sentences(comparison: Comparison, variant: str, metric: str) -> list[str]:
    """Say how many questions failed under a variant."""
    cell = comparison.cell(variant, metric) or {}
    if not number(cell.get("failed")):
        return []
    return [f"{int(cell['failed'])} of its {counted(int(cell['asked']), 'question')} failed and are not compared."]


def caveats(comparison: Comparison) -> list[str]:
    """Name modules whose effects reliably depend on each other, variants without scores, and what was declared late."""
    codes = [comparison.codes[variant] for variant in comparison.failed]
    absent = [f"Without scores, and so not compared: {listing(codes)}."] if codes else []
    late = post_hoc_sentence(comparison.run)
    return [*_interactions(comparison), *absent, *([late] if late else [])]


def _interactions(comparison: Comparison) -> list[str]:
    table = comparison.effects.table
    is_found = (table["kind"] == "interaction") & table["verdict"].isin(["better", "worse"])
    rows = table[is_found & (table["metric"] == comparison.main_metric)]
    pairs = list(dict.fromkeys(f"{row.factor} and {row.other}" for row in rows.itertuples()))
    if not pairs:
        return []
    return [f"What each does depends on the other, which averages hide: {'; '.join(pairs)} (reliable interaction)."]
