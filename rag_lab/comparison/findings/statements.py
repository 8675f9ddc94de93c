"""One record of a verdict, and what it allows one to say: one of five statements, in a word and in a sentence.

*better*; *worse*; *worse, but by less than the margin*; *not worse by more than the margin*, with which something may
be left out where that saves something; *cannot tell*. Of an addition, which costs more and saves nothing, the last but
one is turned round: it is *not better* by more than the margin, and may be left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rag_lab._kit.wording import counted, listing, number, p_text, plain, short_verdict
from rag_lab.comparison.comparison import Comparison
from rag_lab.comparison.tables.comparable import unchanged_fields
from rag_lab.comparison.tables.not_worse import NotWorse
from rag_lab.comparison.tables.prices import Price, average, surplus
from rag_lab.comparison.tables.run_tables import RunTables
from rag_lab.statistics.effects.factors import factor_values, level_text
from rag_lab.statistics.verdict import NO_DIFFERENCE

Found = Literal["better", "worse", "not worse", "not better", "cannot tell"]
Word = Found | Literal["no difference", "not measured", "failed", "stopped", "not run"]
_ORDER: tuple[Word, ...] = ("better", "not worse", "not better", "cannot tell", "no difference", "worse")  # then others
_OFF = ("none", None, False, 0, "")
_OFF_LEVELS = frozenset(map(level_text, _OFF))


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
    row: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_equal(self) -> bool:
        """Whether every question that was compared scores the same."""
        return 0 < self.n == int(self.row["ties"])

    @property
    def gains_little(self) -> bool:
        """Whether it is an addition that is shown to gain no more than the margin."""
        return self.word == "not better" or (self.word == "better" and bool(self.why))


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


def removed_level(factor: str, level: str, first: str) -> str:
    """Name what a level of a factor does without, as `removed` does of a variant; "" where it changes anything else."""
    return f"{factor}={first}" if level in _OFF_LEVELS else ""


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
            one = replace(one, unchanged=unchanged_fields(comparison, variant, against, metric))
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
            removed=removed_level(factor, level, first),
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
    low, high = number(row["low"]), number(row["high"])
    return replace(one, row=row, n=int(row["n"]), effect=number(effect), low=low, high=high, word=word, why=why)
