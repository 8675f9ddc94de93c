"""One record of a verdict, and what it allows one to say: one of five statements, in a word and in a sentence.

*better*; *worse*; *worse, but by less than the margin*; *not worse by more than the margin*, with which something may
be left out where that saves something; *cannot tell*. Of an addition, which costs more and saves nothing, the last but
one is turned round: it is *not better* by more than the margin, and may be left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from rag_lab._kit.wording import counted, listing, number, p_text, plain, short_verdict, signed
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.tables.bounds import BOUNDS, bound_arms
from rag_lab.comparison.tables.costs import MANY_TIMES, Price, average, surplus
from rag_lab.comparison.tables.effects import NotWorse
from rag_lab.comparison.tables.reliability import shared_fields
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.statistics.effects import factor_values, level_text
from rag_lab.statistics.verdict import NO_DIFFERENCE, resolution

Found = Literal["better", "worse", "not worse", "not better", "cannot tell"]
Word = Found | Literal["no difference", "not measured", "failed", "stopped", "not run"]
_ORDER: tuple[Word, ...] = ("better", "not worse", "not better", "cannot tell", "no difference", "worse")  # then others
_MOST_SAVINGS = 2  # cheaper variants that are told one by one
_OFF = ("none", None, False, 0, "")
OFF_LEVELS = frozenset(map(level_text, _OFF))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known in one metric of a variant against another, or of a level of a factor in a grid.

    name: the label of the variant, or `factor = level`; `called` is that in a sentence.
    rival: what it is compared with, in a sentence; `against` names it where it is not the baseline, else it is empty.
    variant_id, against_id: empty for a main effect, which is that of several variants.
    factor, level: of a main effect; empty for a variant.
    n: questions that it stands on.
    effect, low, high: difference of the metric and its 95% interval; None where that cannot be told.
    word: what the statistics say of it; `why` qualifies the word, or is the reason why there is no effect; else empty.
    by_margin: what the margin allows one to say.
    removed: what it does without, see `removed`.
    unchanged: the fields that the metric reads where the variant changes none of them; else empty.
    price: how much more a question takes.
    is_equal: whether every question that was compared scores the same.
    gains_little: whether it is an addition that is shown to gain no more than the margin.
    row: of the table of differences or effects.
    """

    metric: str
    name: str
    called: str
    rival: str
    price: Price
    against: str = ""
    variant_id: str = ""
    against_id: str = ""
    factor: str = ""
    level: str = ""
    n: int = 0
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    word: Word = "not measured"
    why: str = ""
    by_margin: NotWorse | None = None
    removed: str = ""
    unchanged: str = ""
    is_equal: bool = False
    gains_little: bool = False
    row: Mapping[str, Any] = field(default_factory=dict, repr=False)


def statement(verdict: str, found: NotWorse | None, removed: str = "") -> tuple[Found, str]:
    """Return what is said of a comparison in a word, and how that reads on; "" where nothing is to be added.

    `verdict` is that of the two-sided test, `found` that of the margin; `removed` is what the variant does without.
    """
    word: Found = "better" if verdict == "better" else "worse" if verdict == "worse" else "cannot tell"
    if found is None or not found.is_found:
        return word, ""
    follows = f": {text}" if (text := _what_follows(found, removed)) else ""
    if word == "cannot tell":
        return ("not better" if found.is_addition else "not worse"), f"by more than {found.margin:g}{follows}"
    if word == ("worse" if found.is_addition else "better"):
        return word, ""
    return word, f"but by less than {found.margin:g}{follows if found.is_addition else ''}"


def _what_follows(found: NotWorse, removed: str) -> str:
    if found.is_addition:
        return "it may be left out"
    if not found.price.is_saving:
        return ""
    return f"{removed} may be left out" if removed else "it may be used instead"


def margin_sentence(one: Verdict) -> str:
    """Say in full that something is not worse, or adds less, by the margin; "" where that was not found."""
    found = one.by_margin
    if found is None or not found.is_found:
        return ""
    failures = f", of which {found.n_failed} failed and count against it" if found.n_failed else ""
    start = (
        f"{one.called} is not {'better' if found.is_addition else 'worse'} than {one.rival} by more than "
        f"{found.margin:g} in {one.metric} (one-sided corrected p {p_text(found.p_corrected)}, "
        f"{counted(found.n, 'question')}{failures})"
    )
    follows = _what_follows(found, one.removed)
    return (
        f"{start}: {follows}, which saves {found.price.text} a question."
        if follows
        else (f"{start}; it {found.price.sentence}.")
    )


def difference_text(comparison: Comparison, row: Mapping[str, Any]) -> str:
    """Return what is said of a row of `differences`, by test, interval and margin, as for the first table."""
    metric, pair = str(row["metric"]), (str(row["variant_id"]), str(row["against"]))
    word, why = statement(str(row["verdict"]), comparison.not_worse.get((metric, *pair)), removed(comparison, *pair))
    return short_verdict(str(row["verdict"])) if word == "cannot tell" else f"{word} {why}".rstrip()


def removed(tables: RunTables, variant: str, against: str) -> str:
    """Name what a variant does without, as `rerank.name=query_likelihood`; "" where it changes anything else."""
    changes = {plan.variant_id: plan.changes for plan in tables.variants}
    ours, theirs = changes.get(variant, {}), changes.get(against, {})
    base = tables.baseline_values
    pairs = {key: (theirs.get(key, base.get(key)), ours.get(key, base.get(key))) for key in {**theirs, **ours}}
    gone = {key: was for key, (was, now) in pairs.items() if was != now}
    if not gone or any(pairs[key][1] not in _OFF for key in gone):
        return ""
    return listing([f"{key}={was}" for key, was in gone.items()])


def module_rows(comparison: Comparison) -> list[Verdict]:
    """Return the main effects of a grid, or else the pairs that the run is about: the best first, those unscored last.

    They are empty without a quality metric.
    """
    metric = comparison.main_metric
    if metric is None:
        return []
    if comparison.effects.is_grid:
        rows = main_effects(comparison, metric)
    else:
        rows = [pair_verdict(comparison, *pair, metric) for pair in comparison.run.pairs]
    sign = comparison.sign(metric)
    place = {word: number for number, word in enumerate(_ORDER)}
    return sorted(rows, key=lambda row: (place.get(row.word, len(place)), -sign * (row.effect or 0.0)))


def pair_verdict(comparison: Comparison, variant: str, against: str, metric: str) -> Verdict:
    """Return what is known of a variant against another; where they were not compared, why that is so."""
    is_baseline = against == comparison.run.baseline
    rival = "the baseline" if is_baseline else comparison.called(against)
    one = Verdict(
        metric,
        comparison.label(variant),
        comparison.called(variant),
        rival,
        surplus(comparison.prices, variant, against),
        against="" if is_baseline else comparison.name(against),
        variant_id=variant,
        against_id=against,
        by_margin=comparison.not_worse.get((metric, variant, against)),
        removed=removed(comparison, variant, against),
    )
    row, state = comparison.pair(variant, against, metric), comparison.state(variant)
    if row is not None:
        if 0 < int(row["n"]) == int(row["ties"]):
            one = replace(one, unchanged=shared_fields(comparison, variant, against, metric))
        return _measured(one, row, row["difference"], comparison.sign(metric))
    if state == "failed" or state == "stopped":
        return replace(one, word="failed" if state == "failed" else "stopped", why=comparison.failed[variant])
    if variant not in set(comparison.summary["variant_id"]):
        return replace(one, word="not measured" if state == "ok" else "not run", why="it has no scores")
    return replace(one, why=f"{'the baseline' if is_baseline else one.against} has no scores to compare with")


def main_effects(comparison: Comparison, metric: str) -> list[Verdict]:
    """Return what is known of each level of each factor of a grid, averaged over the other factors."""
    table, costs = comparison.effects.table, comparison.prices
    values = factor_values({plan.variant_id: plan.changes for plan in comparison.variants}, comparison.baseline_values)
    scored = {variant: levels for variant, levels in values.items() if variant in costs}
    found = []
    for row in table[(table["metric"] == metric) & (table["kind"] == "main")].to_dict("records"):
        factor, level, first = str(row["factor"]), str(row["level"]), str(row["first"])
        ours, theirs = ([v for v, levels in scored.items() if levels[factor] == one] for one in (level, first))
        one = Verdict(
            metric,
            f"{factor} = {level}",
            f"Averaged over the other modules, {factor}={level}",
            f"{factor}={first}",
            average(costs, ours).minus(average(costs, theirs)) if ours and theirs else Price(),
            against=first,
            factor=factor,
            level=level,
            by_margin=comparison.not_worse.get((metric, factor, level)),
            removed=f"{factor}={first}" if level in OFF_LEVELS else "",
        )
        found.append(_measured(one, row, row["effect"], comparison.sign(metric)))
    return found


def _measured(one: Verdict, row: Mapping[Any, Any], effect: Any, sign: int) -> Verdict:
    """Return a verdict with what its row of a table says; more is better where `sign` is 1."""
    verdict, doubt, smallest = str(row["verdict"]), str(row["doubt"] or ""), number(row["smallest_difference"])
    word: Word
    word, why = statement(verdict, one.by_margin, one.removed)
    if not int(row["n"]):
        word, why = "not measured", verdict
    elif word == "cannot tell" and verdict.startswith(NO_DIFFERENCE):
        word, why = "no difference", verdict.removeprefix(NO_DIFFERENCE).strip()
        if one.unchanged:
            why = f"the metric is blind to it: it reads the {one.unchanged}"
    elif word == "cannot tell" and doubt.startswith("among "):
        side = "better" if sign * effect > 0 else "worse"
        why = f"alone it would count as {side}; corrected p {p_text(row['p_corrected'])}"
    elif word == "cannot tell":
        why = short_verdict(verdict) if doubt or smallest is None else f"could have shown {plain(smallest)}"
        if not doubt and (resolved := resolution(number(effect), smallest)) is not None:
            why += f"; resolved {resolved:.2f} of what it takes"
    low, high, n = number(row["low"]), number(row["high"]), int(row["n"])
    one = replace(one, row=row, n=n, effect=number(effect), low=low, high=high, word=word, why=why)
    gains_little = word == "not better" or (word == "better" and bool(why))
    return replace(one, is_equal=0 < n == row.get("ties"), gains_little=gains_little)


@dataclass(frozen=True)
class Choices:
    """What there is to choose from in a run that has a main metric.

    reference: what variants are set against: the baseline, or what all named pairs share; None where they share
        nothing. `name` is that for a sentence.
    rows: the verdict on each variant against the reference that has an interval; bounds are no choice.
    levels: of each factor under each variant.
    better_levels: of a grid, those that are better over all settings of the other modules, the best of each factor.
    better: the variants that a primary finding makes better than the reference, the best first. In a grid the effects
        of modules are primary: there it is a variant with such a level that is better by itself, too. What gains less
        than the margin is not among them.
    promising: the variants that look better and are no finding, or one of a secondary comparison alone.
    margin_hint: how the report could tell what pays; "" where a margin was declared or none can be.
    """

    comparison: Comparison
    metric: str
    reference: str | None
    name: str
    rows: dict[str, Verdict]
    levels: dict[str, dict[str, str]]
    better_levels: dict[str, Verdict]
    better: list[str]
    promising: list[str]
    margin_hint: str

    def ends(self, one: Verdict) -> tuple[float, float]:
        """Return the worse and the better end of the interval of a verdict."""
        low, high = float(one.low or 0.0), float(one.high or 0.0)
        return (low, high) if self.comparison.sign(self.metric) > 0 else (high, low)

    def dear(self, variant: str) -> float:
        """Return how many times the price of the reference a variant takes; 0 where not many, or a margin decides."""
        ours, base = (self.comparison.prices.get(one or "", Price()) for one in (variant, self.reference))
        times = ours.times(base)
        return times if self.metric not in self.comparison.run.margins and times > MANY_TIMES else 0.0

    def surplus(self, variant: str) -> Price:
        """Return how much more than the reference a variant takes."""
        return surplus(self.comparison.prices, variant, self.reference or "")

    @cached_property
    def near_best(self) -> list[str]:
        """The variants that are shown to be not worse than the best by more than the margin, the cheapest first."""
        table = self.comparison.not_worse_than_best
        return self.cheapest_first([str(one) for one in table.loc[table["is_not_worse"].astype(bool), "variant_id"]])

    def cheapest_first(self, variants: Sequence[str]) -> list[str]:
        """Return variants by dollars, then by seconds that are noticed, and tokens.

        Of those that take the same, what is better comes first, then the reference, then the others by their means.
        """
        costs = self.comparison.prices
        order = [*self.better, self.reference, *self.comparison.ranking["variant_id"]]
        prices = {one: costs.get(one, Price()) for one in variants}
        left = sorted(variants, key=lambda v: [prices[v].usd or 0, prices[v].seconds or 0, prices[v].tokens or 0])
        found: list[str] = []
        while left:
            more = {one: surplus(costs, one, left[0]) for one in left}
            alike = [one for one in left if not more[one].is_costing]
            found += sorted(alike, key=lambda one: (not more[one].is_saving, order.index(one)))
            left = [one for one in left if one not in alike]
        return found

    def gain_text(self, variant: str) -> str:
        """Say what a better variant gains: `it raises ndcg@5 by 0.1 [0.05 to 0.15] and costs 1.9 s …`."""
        one = self.rows[variant]
        ends = sorted(abs(end or 0.0) for end in (one.low, one.high))
        size = f"{plain(abs(one.effect or 0.0))} [{plain(ends[0])} to {plain(ends[1])}]"
        verb, metric = "raises" if (one.effect or 0.0) > 0 else "lowers", self.comparison.directed(self.metric)
        return f"it {verb} {metric} by {size} and {self.surplus(variant).sentence}"

    def savings(self) -> list[str]:
        """Say what the variants would save that no interval puts behind the reference, and what each may cost."""
        sign, told = self.comparison.sign(self.metric), []
        cheaper = [variant for variant in self.rows if self.surplus(variant).is_saving]
        found = self.cheapest_first([one for one in cheaper if sign * self.ends(self.rows[one])[1] >= 0])
        for one in (self.rows[variant] for variant in found[:_MOST_SAVINGS]):
            may = f"by its 95% interval it changes {self.metric} by {signed(self.ends(one)[0])} at worst"
            if one.is_equal:
                blind = f"; but {self.metric} reads only the {one.unchanged}, which it does not change"
                may = f"it scores the same on every question{blind if one.unchanged else ''}"
            told.append(f"{one.called} {self.surplus(one.variant_id).sentence}: {may}.")
        more = len(found) - len(told)
        return [*told, f"{counted(more, 'more variant')} would save something."] if more > 0 else told

    def margin_not_met(self) -> list[str]:
        """Say that nothing was shown by the margin of the metric, or nothing that would be recommended."""
        margin = self.comparison.run.margins.get(self.metric)
        if margin is None:
            return []
        near_best = f"shown to be not worse than the best by more than {margin:g}"
        if not self.near_best:
            return [f"No variant is {near_best}."]
        first = self.comparison.called(self.near_best[0])
        return [f"{first} is {near_best}, but costs more than {self.name}, and no gain is shown that pays it."]


def choices_of(comparison: Comparison, metric: str) -> Choices:
    """Return what there is to choose from, in this metric."""
    run, bounds = comparison.run, bound_arms(comparison)
    reference: str | None = run.baseline
    if run.pairs and not comparison.effects.is_grid and not any(run.baseline in pair for pair in run.pairs):
        shared = {against for _, against in run.pairs}
        reference = shared.pop() if len(shared) == 1 else None
    ids = [plan.variant_id for plan in comparison.variants if plan.variant_id not in bounds]
    compared = [one for one in ids if comparison.pair(one, reference or "", metric)]
    verdicts = [pair_verdict(comparison, one, reference or "", metric) for one in compared]
    rows = {one.variant_id: one for one in verdicts if one.low is not None}
    levels = factor_values({plan.variant_id: plan.changes for plan in comparison.variants}, comparison.baseline_values)
    better_levels: dict[str, Verdict] = {}
    for row in module_rows(comparison):
        is_bound = row.factor == "answer.context" and row.level in BOUNDS
        if row.factor and row.word == "better" and not row.gains_little and not is_bound:
            better_levels.setdefault(row.factor, row)
    better, promising = [], []
    for variant in comparison.ranking["variant_id"]:  # failures count as the worst
        found = rows.get(variant)
        if found is None or found.gains_little:
            continue
        is_better = found.row["verdict"] == "better"
        has_level = any(levels[variant].get(factor) == row.level for factor, row in better_levels.items())
        if is_better and (has_level or found.row["family"] == "primary"):
            better.append(variant)
        elif (is_better or found.row["doubt"]) and comparison.sign(metric) * (found.effect or 0.0) > 0:
            promising.append(variant)
    name = "the baseline" if reference in (None, run.baseline) else comparison.called(reference or "")
    hint, scale = "", comparison.scales.get(metric)
    if metric not in run.margins and scale is not None and scale.width is not None:
        hint = (
            "A margin, the largest loss that you would accept, says what pays and what may be left out: `margin: "
            f"{{{metric}: …}}` in the experiment file before it runs, or then `rag-lab report RUN --margin {metric}=…`."
        )
    return Choices(comparison, metric, reference, name, rows, levels, better_levels, better, promising, hint)
